"""The machines of an arm: how programs are built, wrapped, started, watched and ended there."""
