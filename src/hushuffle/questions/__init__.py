"""One room per question; each reads laws, never another room."""
