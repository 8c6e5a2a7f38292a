package config_test

import "strings"

// example is the example of a section of the page: a sentence and the lines of the
// file that it explains. The test of pages has each checked by `tollgate check`, unless
// its lines need further files.
type example struct{ sentence, lines string }

// String is the example as the page shows it. A section without one stands out.
func (e example) String() string {
	if e.lines == "" {
		return "There is no example.\n\n"
	}
	unchecked := ""
	if strings.Contains(e.lines, "orgs_files") {
		unchecked = "<!-- not checked: reads files of teams; test/script tells the story -->\n"
	}
	return e.sentence + "\n\n" + unchecked + "```yaml\n" + e.lines + "\n```\n\n"
}

// examples returns the example of each section, by its name.
func examples() map[string]example {
	return map[string]example{
		"listen": {
			"Listen on all interfaces, and set the URL that your callers use:",
			"listen: 0.0.0.0:8080\npublic_url: https://gpus.acme.example\ntls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}",
		},
		"tls":   {"Renewed certificates are loaded without a restart:", "tls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}"},
		"admin": {"Give each admin a token, so that the audit log records names:", "admin:\n  admins:\n    - {name: ann, sha256: \"<64 hexadecimal digits>\", roles: [admin]}\n    - {name: audit, sha256: \"<64 hexadecimal digits>\", roles: [viewer], org: acme}"},
		"envoy": {"Serve an Envoy on the same host:", "envoy: {listen: \"127.0.0.1:8082\"}"},
		"platform": {
			"Set the platform's URLs, and the proxy of your network:",
			"platform: {base_url: https://api.platform.example, run_url: https://run.platform.example, proxy: {env: PROXY_URL}}",
		},
		"redis":       {"Share one Redis with other programs:", "redis: {url: {env: REDIS_URL}, prefix: \"acme:\"}"},
		"timeouts":    {"Give load balancers ten seconds to notice a shutdown:", "timeouts: {notice: 10s, drain: 30s}"},
		"run":         {"Let callers send batches of jobs:", "run: {batches: true}"},
		"balancers":   {"Trust your load balancers:", "balancers: {addresses: [10.0.0.0/8], forwarded_hops: 1}"},
		"connections": {"Raise the limit per address for callers that share one:", "connections: {total: 20000, per_address: 20000}"},
		"overload":    {"Permit more concurrent requests:", "overload: {working: 64, open: 4096}"},
		"limits":      {"Let reads pass while Redis is down, and count every call exactly:", "limits: {mode: exact, failure: {read: open, write: closed}}"},
		"policies":    {"Give policies more time:", "policies: {deadline: 500ms}"},
		"decisions":   {"Log decisions, without the names of pods:", "decisions:\n  file: {path: decisions.log, keep: 7}\n  mask: [/input/request/body/name]"},
		"audit":       {"Log each change, and flush it to disk first:", "audit: {file: {path: audit.log, keep: 30}, sync: true}"},
		"spend":       {"Store hourly costs for a quarter:", "spend: {history: {hourly: 92}}"},
		"catalog":     {"Set your own price of volumes:", "catalog: {storage: {standard: \"0.05\"}}"},
		"telemetry":   {"Send one trace in ten to your collector:", "telemetry: {otlp: {endpoint: \"http://127.0.0.1:4318\"}, sample_ratio: 0.1}"},
		"log":         {"Write a readable log:", "log: {level: debug, format: text}"},
		"legacy":      {"Announce the end of the retired interfaces:", "legacy: {sunset: \"2027-06-30\"}"},
		"v1":          {"Answer before old scripts time out after twenty seconds:", "v1: {budget: 18s}"},
		"graphql":     {"Disable introspection:", "graphql: {introspection: false}"},
		"issuers": {
			"Accept tokens of your issuer, and read the team from a claim:",
			"issuers:\n  - id: sso\n    url: https://sso.acme.example\n    audiences: [tollgate]\n    orgs: [acme]\n    claims: {team: team}\n    role: operator",
		},
		"certificates": {
			"Accept certificates of your authority:",
			"certificates:\n  authorities:\n    - {id: mesh, ca: {file: ./ca.crt}, orgs: [acme], team: research, role: operator, max_life: 24h}\ntls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}",
		},
		"orgs": {
			"Define an organisation with two teams, budgets and a policy:",
			"orgs:\n  - id: acme\n    credential: {env: ACME_PLATFORM_KEY}\n    budget: {per_month: 20000}\n    policies:\n      - {policy: gpu_count, params: {max_per_pod: 4}}\n    teams:\n" +
				"      - {id: research, budget: {per_hour: 15}}\n      - {id: serving, budget: {per_hour: 40}}\n    keys:\n      - {id: ann-laptop, team: research, sha256: \"<64 hexadecimal digits>\"}",
		},
		"orgs_files": {"Define each organisation in its own file:", "orgs_files: conf.d/*.yaml"},
		"org_bounds": {
			"Limit budgets to 1000 USD a month, and enforce the GPU allow-list:",
			"orgs_files: conf.d/*.yaml\norg_bounds: {budget: {per_month: 1000}, enforce: [gpu_allow_list]}",
		},
	}
}
