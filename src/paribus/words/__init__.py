"""The prose: codes and figures in, sentences out. What is judged carries data and no sentence."""
