"""Small cases in every order of their actors' steps, with a crash at every point of each."""
