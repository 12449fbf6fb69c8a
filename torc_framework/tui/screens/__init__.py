"""Screens: the main screen, the viewer of logs and files, texts and questions."""
