"""What the layers of a study mean for kinds of application, and for one application."""
