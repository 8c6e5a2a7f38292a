package config

// DemoKeys lists the fixed keys of the demo. They are published in the documentation, so a configuration outside the demo that accepts one
// of them is refused.
func DemoKeys() []string {
	return []string{"tg_demo_research", "tg_demo_lead", "tg_demo_platform", "tg_demo_ml", "tg_demo_tiny", "tg_demo_exempt", "tg_demo_globex"}
}
