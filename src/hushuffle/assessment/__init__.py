"""The main job: what a collection promises and how accurate it is, a chapter for each question."""
