package schema

// Upper limits of the timeouts of a sandbox, in seconds. The platform silently reduces higher values to these limits (reference
// platform-v2-growth, section 2.4).
const (
	maxSandboxIdle     = 7200
	maxSandboxLifetime = 86_400
)

func checkSandboxBounds(body map[string]any, report reporter) {
	atMost(body, report, maxVCPUs, "vcpuCount")
	atMost(body, report, maxMemory, "memoryInGb")
	atMost(body, report, maxSandboxIdle, "idleTimeoutSeconds")
	atMost(body, report, maxSandboxLifetime, "maxLifetimeSeconds")
}

// checkEgress rejects members that restrict outbound connections, because the platform documents them but does not confirm in its responses
// that the restrictions are in force (reference platform-v2-growth, section 5, D5).
func checkEgress(body map[string]any, report reporter) {
	for _, name := range []string{"egressMode", "egressAllowlist"} {
		if has(body, name) {
			report("is not available because the platform does not confirm that outbound connections are restricted", name)
		}
	}
}
