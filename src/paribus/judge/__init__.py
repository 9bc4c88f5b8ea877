"""What launches that are stored, or figures from elsewhere, say: verdicts, notices, judgement."""
