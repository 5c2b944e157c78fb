"""Numbers without domain words: accurate tails, directed rounding, certified roots."""
