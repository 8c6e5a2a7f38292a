package config

// DemoKeys lists the fixed keys of the demo. Because the documentation contains these keys, only the demo may accept them: any other
// configuration with one of these keys is refused.
func DemoKeys() []string {
	return []string{"tg_demo_research", "tg_demo_lead", "tg_demo_platform", "tg_demo_ml", "tg_demo_tiny", "tg_demo_exempt", "tg_demo_globex"}
}
