"""All else equal: classes of facts, what each factor explains, the differences, the noise gate."""
