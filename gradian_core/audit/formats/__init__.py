"""An audit as text for people, as annotations of GitHub, and as SARIF."""
