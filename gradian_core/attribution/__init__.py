"""Query gradients, scores, agreement, clusters."""
