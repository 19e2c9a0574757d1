"""Variables of contrastive results, by what they say."""
