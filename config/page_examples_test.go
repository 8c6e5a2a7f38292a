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
			"You let callers of all interfaces in, and name the address under which yours find the gateway:",
			"listen: 0.0.0.0:8080\npublic_url: https://gpus.acme.example\ntls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}",
		},
		"tls":   {"You encrypt your listener; a renewed file is taken without a restart:", "tls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}"},
		"admin": {"You name your admins, so that the audit log names them:", "admin:\n  admins:\n    - {name: ann, sha256: \"<64 hexadecimal digits>\", roles: [admin]}\n    - {name: audit, sha256: \"<64 hexadecimal digits>\", roles: [viewer], org: acme}"},
		"envoy": {"You let an Envoy on your host ask the gateway:", "envoy: {listen: \"127.0.0.1:8082\"}"},
		"platform": {
			"You name the platform's addresses, and the proxy through which your network reaches them:",
			"platform: {base_url: https://api.platform.example, run_url: https://run.platform.example, proxy: {env: PROXY_URL}}",
		},
		"redis":       {"You share one Redis with other programs, so your keys get a prefix:", "redis: {url: {env: REDIS_URL}, prefix: \"acme:\"}"},
		"timeouts":    {"Your balancer sends on for ten seconds after you stop a gateway, so you keep the listener open as long:", "timeouts: {notice: 10s, drain: 30s}"},
		"run":         {"You let your callers send jobs in batches:", "run: {batches: true}"},
		"balancers":   {"You trust the addresses that your load balancers report:", "balancers: {addresses: [10.0.0.0/8], forwarded_hops: 1}"},
		"connections": {"All your callers come from one address, so you lift the bound on it:", "connections: {total: 20000, per_address: 20000}"},
		"overload":    {"You allow more requests in work than your machine's cores suggest:", "overload: {working: 64, open: 4096}"},
		"limits":      {"You let your reads pass while Redis is away, and count your creates exactly:", "limits: {mode: exact, failure: {read: open, write: closed}}"},
		"policies":    {"Your own policies are dear, so you give each evaluation more time:", "policies: {deadline: 500ms}"},
		"decisions":   {"You keep a log of decisions without the names that your callers give their pods:", "decisions:\n  file: {path: decisions.log, keep: 7}\n  mask: [/input/request/body/name]"},
		"audit":       {"You record each change before it is made, and wait until your disk has it:", "audit: {file: {path: audit.log, keep: 30}, sync: true}"},
		"spend":       {"You keep the costs of your hours for a quarter:", "spend: {history: {hourly: 92}}"},
		"catalog":     {"Your volumes cost less than the published price:", "catalog: {storage: {standard: \"0.05\"}}"},
		"telemetry":   {"You send one trace in ten to your collector:", "telemetry: {otlp: {endpoint: \"http://127.0.0.1:4318\"}, sample_ratio: 0.1}"},
		"log":         {"You read the log yourself while you try things:", "log: {level: debug, format: text}"},
		"legacy":      {"You announce to your old scripts when you will switch them off:", "legacy: {sunset: \"2027-06-30\"}"},
		"v1":          {"Your old scripts give up after twenty seconds, so you answer them before:", "v1: {budget: 18s}"},
		"graphql":     {"You do not let your callers read the schema:", "graphql: {introspection: false}"},
		"issuers": {
			"You accept the tokens of your own issuer, and read the team from a claim:",
			"issuers:\n  - id: sso\n    url: https://sso.acme.example\n    audiences: [tollgate]\n    orgs: [acme]\n    claims: {team: team}\n    role: operator",
		},
		"certificates": {
			"You accept certificates of your own authority, and read the team from their names:",
			"certificates:\n  authorities:\n    - {id: mesh, ca: {file: ./ca.crt}, orgs: [acme], team: research, role: operator, max_life: 24h}\ntls: {certificate: {file: ./tls.crt}, key: {file: ./tls.key}}",
		},
		"orgs": {
			"You have one organisation, two teams with budgets, and a policy for all:",
			"orgs:\n  - id: acme\n    credential: {env: ACME_PLATFORM_KEY}\n    budget: {per_month: 20000}\n    policies:\n      - {policy: gpu_count, params: {max_per_pod: 4}}\n    teams:\n" +
				"      - {id: research, budget: {per_hour: 15}}\n      - {id: serving, budget: {per_hour: 40}}\n    keys:\n      - {id: ann-laptop, team: research, sha256: \"<64 hexadecimal digits>\"}",
		},
		"orgs_files": {"You give each of your organisations a file of its own:", "orgs_files: conf.d/*.yaml"},
		"org_bounds": {
			"You let each such organisation spend 1000 USD a month, and you make the allow-list of GPUs binding:",
			"orgs_files: conf.d/*.yaml\norg_bounds: {budget: {per_month: 1000}, enforce: [gpu_allow_list]}",
		},
	}
}
