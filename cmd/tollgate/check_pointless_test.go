package main

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

func digestOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}

// pointless are settings that let nothing pass, contradict each other or never apply.
func pointless() map[string]wrong {
	digest := strings.Repeat("5f", 32)
	twoTeams := "teams: [{id: research}, {id: ml}]"
	policies := func(entries string) string { return "policies:\n  - " + strings.ReplaceAll(entries, "\n", "\n  - ") }
	return map[string]wrong{
		// Nothing passes, or two settings contradict each other.
		"disjoint lists":           {org: policies("{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}\n{policy: gpu_allow_list, params: {§gpus: [NVIDIA A40]}}"), want: "orgs[0].policies[1].params.gpus: does not overlap with policies[0] for the same callers, so the two entries refuse everything"},
		"disjoint hours":           {org: policies("{policy: working_hours, params: {from: \"08:00\", to: \"12:00\"}}\n{policy: working_hours, params: {from: §\"13:00\", to: \"18:00\"}}"), want: "orgs[0].policies[1].params.from: does not overlap with policies[0]"},
		"disjoint days":            {org: policies("{policy: working_hours, params: {days: [Monday]}}\n{policy: working_hours, params: {§days: [Tuesday]}}"), want: "orgs[0].policies[1].params.days: does not overlap with policies[0]"},
		"disjoint data centres":    {org: policies("{policy: data_centers, params: {allow: [EU-*]}}\n{policy: data_centers, teams: [research], params: {§allow: [US-TX-1]}}"), want: "orgs[0].policies[1].params.allow: does not overlap with policies[0]"},
		"disjoint clouds":          {org: policies("{policy: cloud_tier, params: {clouds: [SECURE]}}\n{policy: cloud_tier, params: {§clouds: [COMMUNITY]}}"), want: "orgs[0].policies[1].params.clouds: does not overlap with policies[0]"},
		"forced count":             {org: policies("{policy: gpu_count, params: {max_per_pod: 4}}\n{policy: field_values, params: {force: {createPod: {/gpu/count: §8}}}}"), want: `orgs[0].policies[1].params.force.createPod["/gpu/count"]: 8 is refused by policies[0] (gpu_count)`},
		"forced GPU":               {org: policies("{policy: field_values, params: {force: {createPod: {/gpu/id: §NVIDIA A40}}}}\n{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}"), want: `orgs[0].policies[0].params.force.createPod["/gpu/id"]: NVIDIA A40 is refused by policies[1] (gpu_allow_list)`},
		"forced cloud":             {org: policies("{policy: cloud_tier, params: {clouds: [SECURE]}}\n{policy: field_values, params: {defaults: {createPod: {/cloud: §COMMUNITY}}}}"), want: `orgs[0].policies[1].params.defaults.createPod["/cloud"]: COMMUNITY is refused by policies[0] (cloud_tier)`},
		"forced disk":              {org: policies("{policy: disk, params: {max_gb: 50}}\n{policy: field_values, params: {force: {createPod: {/disk: §100}}}}"), want: `orgs[0].policies[1].params.force.createPod["/disk"]: 100 is refused by policies[0] (disk)`},
		"no operation":             {org: policies("{policy: operations, params: {§allow: []}}"), want: "orgs[0].policies[0].params.allow: is empty, so everything is refused"},
		"no port":                  {org: policies("{policy: ports, params: {§allow: []}}"), want: "orgs[0].policies[0].params.allow: is empty, so everything is refused"},
		"no flavour":               {org: policies("{policy: cpu_flavors, params: {§flavors: []}}"), want: "orgs[0].policies[0].params.flavors: is empty, so everything is refused"},
		"read-only operations":     {org: policies("{policy: read_only}\n{policy: operations, params: {allow: [§createPod]}}"), want: `orgs[0].policies[1].params.allow[0]: "createPod" is not a read: policies[0] (read_only) refuses it`},
		"empty pattern":            {org: policies("{policy: naming, params: {pattern: §\"\"}}"), want: "orgs[0].policies[0].params.pattern: is empty and matches no name, so everything is refused"},
		"pattern of 300 letters":   {org: policies("{policy: naming, params: {pattern: §\"[a-z]{300}\"}}"), want: "orgs[0].policies[0].params.pattern: matches only names of at least 300 characters, but names have at most 191"},
		"pattern above its length": {org: policies("{policy: naming, params: {pattern: §\"team-[a-z]+\", max_length: 5}}"), want: "orgs[0].policies[0].params.pattern: matches only names of at least 6 characters, but names have at most 5"},
		"price below all":          {org: policies("{policy: price_ceiling, params: {max_usd_per_hour: §0.001}}"), want: "orgs[0].policies[0].params.max_usd_per_hour: 0.001 USD is below every price, so everything is refused"},
		"GPU price below all":      {org: policies("{policy: price_ceiling, params: {max_usd_per_gpu_hour: §0.01}}"), want: "orgs[0].policies[0].params.max_usd_per_gpu_hour: 0.01 USD is below every price"},
		"budget below all":         {org: "budget: {per_hour: §0.01}", want: "orgs[0].budget.per_hour: 0.01 USD is below the lowest price of a pod, 0.02 USD per hour, so every start is refused"},
		"tiny budget":              {org: "budget: {per_day: §0.0000001}", want: "orgs[0].budget.per_day: 0.000001 USD is below the lowest possible cost, so every start is refused"},
		"tiny budget of a month":   {teams: "teams: [{id: research, budget: {per_month: §0.001}}]", want: "orgs[0].teams[0].budget.per_month: 0.001 USD is below the lowest possible cost"},
		"no GPU in flight":         {org: policies("{policy: gpu_in_flight, params: {max_per_org: §0}}"), want: "orgs[0].policies[0].params.max_per_org: is 0, so everything with a GPU is refused"},
		"more GPUs than budget":    {org: "budget: {gpus: 4}\n" + policies("{policy: gpu_in_flight, params: {max_per_org: §8}}"), want: "orgs[0].policies[0].params.max_per_org: 8 has no effect because it exceeds budget.gpus (4)"},
		"more GPUs than a team's":  {teams: "teams: [{id: research, budget: {gpus: 2}}]", org: policies("{policy: gpu_in_flight, params: {max_per_team: §3}}"), want: "orgs[0].policies[0].params.max_per_team: 3 has no effect because it exceeds the budget.gpus of every team"},
		"hour above day":           {org: "budget: {per_hour: §60, per_day: 50}", want: "orgs[0].budget.per_hour: 60 exceeds per_day (50), which is exhausted first"},
		"day above month":          {org: "budget: {per_day: §60, per_month: 50}", want: "orgs[0].budget.per_day: 60 exceeds per_month (50), which is exhausted first"},
		"week above month":         {org: "budget: {per_week: §60, per_month: 50}", want: "orgs[0].budget.per_week: 60 exceeds per_month (50), which is exhausted first"},
		"quarter above total":      {org: "budget: {per_quarter: §60, total: 50}", want: "orgs[0].budget.per_quarter: 60 exceeds total (50), which is exhausted first"},
		"tiny total":               {org: "budget: {total: §0.001}", want: "orgs[0].budget.total: 0.001 USD is below the lowest possible cost"},
		"hour above month":         {keys: `keys: [{id: ann, sha256: "` + digest + `", budget: {per_hour: §60, per_month: 50}}]`, want: "orgs[0].keys[0].budget.per_hour: 60 exceeds per_month (50), which is exhausted first"},
		"variable with a space":    {org: policies("{policy: env_rules, params: {required: [§MY VAR]}}"), want: `orgs[0].policies[0].params.required[0]: "MY VAR" is not a variable name`},
		"forbidden assignment":     {org: policies("{policy: env_rules, params: {forbidden: [§\"A=B\"]}}"), want: `orgs[0].policies[0].params.forbidden[0]: "A=B" is not a variable name`},
		"share of nothing":         {top: "limits: {gateways: §1000}", org: "limits: {minute: 600}", want: `limits.gateways: is too high: each of 1000 gateways gets less than one of the 600 calls per minute of organisation "acme", so no calls are admitted while Redis is down`},
		"lookup above call":        {top: "timeouts: {lookup: §2m, call: 60s}", want: "timeouts.lookup: 2m0s exceeds timeouts.call (1m0s), which expires first"},
		"connect above call":       {top: "timeouts: {connect: §2m, call: 60s}", want: "timeouts.connect: 2m0s exceeds timeouts.call (1m0s), which expires first"},
		"team above organisation":  {org: "budget: {per_day: 10}", teams: "teams: [{id: research, budget: {per_day: §20}}]", want: "orgs[0].teams[0].budget.per_day: 20 exceeds the limit of the organisation (10), which refuses calls first"},
		"key above organisation":   {org: "budget: {gpus: 1}", keys: `keys: [{id: ann, sha256: "` + digest + `", budget: {gpus: §2}}]`, want: "orgs[0].keys[0].budget.gpus: 2 exceeds the limit of the organisation (1), which refuses calls first"},
		"key above team":           {teams: "teams: [{id: research, budget: {pods: 3}}]", keys: `keys: [{id: ann, team: research, sha256: "` + digest + `", budget: {pods: §4}}]`, want: `orgs[0].keys[0].budget.pods: 4 exceeds the limit of team "research" (3), which refuses calls first`},

		// Settings that never apply.
		"no teams":              {org: policies("{policy: read_only, §teams: []}"), want: "orgs[0].policies[0].teams: is empty, so the entry applies to everyone"},
		"connections above all": {top: "connections: {total: 5, per_address: §50}", want: "connections.per_address: 50 exceeds connections.total (5), which is reached first"},
		"workers always on":     {org: policies("{policy: serverless_workers, params: {max_workers: 1, max_always_on: §3}}"), want: "orgs[0].policies[0].params.max_always_on: 3 exceeds max_workers (1)"},
		"pods without GPUs":     {org: policies("{policy: gpu_count, params: {max_per_pod: §0}}"), want: "orgs[0].policies[0].params.max_per_pod: is 0, so everything with a GPU is refused"},
		"no roles":              {org: policies("{policy: read_only, §roles: []}"), want: "orgs[0].policies[0].roles: is empty, so the entry applies to everyone"},
		"no exceptions":         {org: policies("{policy: read_only, §except_roles: []}"), want: "orgs[0].policies[0].except_roles: is empty, so the entry applies to everyone"},
		"all teams excepted":    {teams: twoTeams, org: policies("{policy: read_only, §except_teams: [research, ml]}"), want: "orgs[0].policies[0].except_teams: lists all teams of the organisation as exceptions, so the entry applies only to callers without a team"},
		"role of no key":        {org: policies("{policy: read_only, §roles: [viewer]}"), want: "orgs[0].policies[0].roles: no key of the organisation has one of these roles"},
		"covered entry":         {org: policies("§{policy: gpu_count, teams: [research], params: {max_per_pod: 8}}\n{policy: gpu_count, params: {max_per_pod: 4}}"), want: "orgs[0].policies[0]: has no effect because policies[1] applies to all callers and is at least as strict"},
		"covered list":          {org: policies("{policy: gpu_allow_list, params: {gpus: [NVIDIA L4]}}\n§{policy: gpu_allow_list, teams: [research], params: {gpus: [NVIDIA L4, NVIDIA A40]}}"), want: "orgs[0].policies[1]: has no effect because policies[0] applies to all callers and is at least as strict"},
		"the same twice":        {org: policies("{policy: read_only, params: {allow_stopping: true}}\n§{policy: read_only, params: {allow_stopping: true}}"), want: "orgs[0].policies[1]: has no effect because policies[0] applies to all callers"},
		"team's quota":          {org: "limits: {minute: 60}", teams: "teams: [{id: research, limits: {minute: §90}}]", want: "orgs[0].teams[0].limits.minute: 90 exceeds the limit of the organisation (60), which refuses calls first"},
		"key's quota":           {teams: "teams: [{id: research, limits: {hour: 60}}]", keys: `keys: [{id: ann, team: research, sha256: "` + digest + `", limits: {hour: §90}}]`, want: `orgs[0].keys[0].limits.hour: 90 exceeds the limit of team "research" (60), which refuses calls first`},
		"class's quota":         {org: "limits: {minute: 60}\nclasses: [{id: creates, operations: [createPod], per: org, limits: {minute: §90}}]", want: "orgs[0].classes[0].limits.minute: 90 exceeds the limit of the organisation (60), which refuses calls first"},
		"stop without a budget": {org: "over: {stop: §newest}", want: "orgs[0].over.stop: has no effect without a cost budget or a budget of gpus"},
		"stop by volumes":       {org: "budget: {volume_gb: 10}\nover: {stop: §newest}", want: "orgs[0].over.stop: has no effect without a cost budget or a budget of gpus"},
		"team's stop":           {teams: "teams: [{id: research, over: {stop: §most_expensive}}]", want: "orgs[0].teams[0].over.stop: has no effect without a cost budget or"},
		"notice of no stop":     {org: "budget: {per_day: 5}\nover: {notice: §5m}", want: "orgs[0].over.notice: has no effect without over.stop"},
		"no receiver":           {org: "idle: {for: 1h, action: §notify}", want: "orgs[0].idle.action: notify requires a receiver: set alerts.webhook.url"},
		"idle notice":           {org: "idle: {for: 1h, notice: §1h}", want: "orgs[0].idle.notice: has no effect unless idle.action is stop"},
		"report unsent":         {org: "alerts: {§report: {weekday: mon}}", want: "orgs[0].alerts.report: is not sent to any receiver: set alerts.webhook.url or spend.reports"},
		"keep what":             {top: "public_url: https://gateway.example", org: "alerts: {§snooze_secret: {env: SECRET}}", want: "orgs[0].alerts.snooze_secret: has no effect without idle.for"},
		"secret of no webhook":  {org: "alerts: {webhook: {§secret: {env: SECRET}}}", want: "orgs[0].alerts.webhook.secret: has no effect without alerts.webhook.url"},
		"grants of nothing":     {teams: "teams: [{id: research, §grants: {per_hour: 5}}]", want: "orgs[0].teams[0].grants: has no effect because no policy or budget of the organisation is approvable"},
		"weight":                {teams: "teams: [{id: research, weight: §3}]", want: "orgs[0].teams[0].weight: has no effect without limits.fair_share.enabled"},
		"lease in exact":        {top: "limits: {§lease: {horizon: 2s}}", want: "limits.lease: has no effect because limits.mode is exact"},
		"sample of nothing":     {top: "telemetry: {sample_ratio: §0.5}", want: "telemetry.sample_ratio: has no effect without telemetry.otlp.endpoint"},
		"trusted for nothing":   {top: "telemetry: {context: {§trusted: [10.0.0.0/8]}}", want: "telemetry.context.trusted: has no effect without telemetry.otlp.endpoint"},
		"sync of no file":       {top: "audit: {sync: §true}", want: "audit.sync: has no effect without audit.file"},
		"bounds of nothing":     {top: "§org_bounds: {keys: 5}", want: "org_bounds: has no effect without orgs_files"},
		"files that are not":    {top: "orgs_files: §conf.d/*.yaml", want: "orgs_files: does not match any file"},
		"class of no teams":     {teams: "teams: []", keys: `keys: [{id: ann, sha256: "` + digest + `"}]`, org: "classes: [{id: creates, operations: [createPod], per: §team, limits: {minute: 5}}]", want: `orgs[0].classes[0].per: has no effect because organisation "acme" has no teams`},
		"class called minute":   {org: "classes: [{id: §minute, operations: [createPod], limits: {minute: 5}}]", want: `orgs[0].classes[0].id: "minute" is also the name of a time window, which is ambiguous in RateLimit headers`},
		"balancers alone":       {top: "balancers: {§addresses: [10.0.0.0/24]}", want: "balancers.addresses: has no effect unless proxy_protocol, forwarded_hops or trace_context is set"},
		"no GPU listed":         {org: policies("{policy: §gpu_allow_list}"), want: "orgs[0].policies[0].policy: gpu_allow_list without params.gpus or params.by_offer refuses every GPU"},
		"mask of no log":        {top: "decisions: {§mask: [/input/request/body]}", want: "decisions.mask: has no effect unless decisions.file, decisions.stdout or decisions.service is set"},
		"sample of no log":      {top: "decisions: {sample_allowed: §0.5}", want: "decisions.sample_allowed: has no effect"},
		"prefix of embedded":    {redis: "redis: {embedded: true, prefix: §\"a:\"}", want: "redis.prefix: has no effect"},
		"keyless limit":         {top: "legacy: {keyless: {§limit: {rate: 5}}}", want: "legacy.keyless.limit: has no effect without legacy.keyless.org"},
		"exempt of nothing":     {org: "isolation: {§exempt: [admin]}", want: "orgs[0].isolation.exempt: has no effect without isolation.read or isolation.change"},
		"horizon of nothing":    {org: "horizon: §2h", want: "orgs[0].horizon: has no effect because no budget in the file has a period or a total"},
		"prices of no runs":     {org: "prices: {§runs: {m: {usd_per_run: 1}}}", want: "orgs[0].prices.runs: has no effect without platform.run_url"},
		"models of no runs":     {org: "§model_paths: [responses]", want: "orgs[0].model_paths: has no effect without platform.run_url"},
		"batches of no runs":    {top: "run: {batches: §true}", want: "run.batches: has no effect without platform.run_url"},
		"digest after the end":  {keys: `keys: [{id: ann, expires: 2098-01-01T00:00:00Z, digests: [{sha256: "` + digest + `", not_before: §2099-01-01T00:00:00Z}]}]`, want: "orgs[0].keys[0].digests[0].not_before: is not before the expiry of the key, so the digest is never accepted"},
	}
}

// weak are settings that are safe only by chance.
func weak() map[string]wrong {
	issuers := "issuers: [{id: corp, url: https://login.test, audiences: [§tollgate], orgs: [acme], role: viewer}]\n"
	return map[string]wrong{
		"expired certificate":    {top: "telemetry: {otlp: {endpoint: \"https://c.test\", §ca: {env: OLD}}}", want: "telemetry.otlp.ca: certificate of \"mesh\" expired at "},
		"certificate too early":  {top: "telemetry: {otlp: {endpoint: \"https://c.test\", §ca: {env: FUTURE}}}", want: "telemetry.otlp.ca: certificate of \"mesh\" is not valid before"},
		"decisions over http":    {top: "decisions: {service: {url: §\"http://logs.test/\"}}", want: "decisions.service.url: uses http to another host, so decisions, which contain requests, are sent unencrypted; use https"},
		"headers over http":      {top: "telemetry: {otlp: {endpoint: §\"http://c.test:4318\", headers: {authorization: {env: SECRET}}}}", want: "telemetry.otlp.endpoint: uses http to another host, so the export headers are sent unencrypted"},
		"audience of admins":     {top: issuers + "admin: {issuers: [{id: ops, url: https://login.test, audiences: [tollgate], grants: {sre: admin}}]}", want: `issuers[0].audiences[0]: "tollgate" is also an audience of admin.issuers, so callers' tokens are accepted as admin tokens`},
		"trusted by everyone":    {top: "telemetry: {otlp: {endpoint: \"https://c.test\"}, context: {trusted: [§0.0.0.0/0]}}", want: "telemetry.context.trusted[0]: 0.0.0.0/0 contains all addresses, so it applies to every client"},
		"admin in the clear":     {top: "admin: {listen: §\"0.0.0.0:8081\", token: {env: ADMIN_TOKEN}}", want: "admin.listen: accepts unencrypted connections from other hosts, so admin tokens can be read in transit; set admin.tls"},
		"callers in the clear":   {top: "listen: §0.0.0.0:8080\nconsole: false", want: "listen: accepts unencrypted connections from other hosts, so callers' keys can be read in transit"},
		"public URL over http":   {top: "public_url: §http://gateway.example", want: "public_url: uses http, so callers' keys are sent unencrypted; use https"},
		"name of the platform":   {platform: `platform: {base_url: "https://10.0.0.9"}`, top: "§v1: {}", want: "legacy: brand is not set, and platform.base_url does not contain the name of the platform"},
		"address of everyone":    {keys: `keys: [{id: ann, addresses: [§"0.0.0.0/0"], sha256: "` + strings.Repeat("5f", 32) + `"}]`, want: "orgs[0].keys[0].addresses[0]: 0.0.0.0/0 contains all addresses, so the key is accepted from anywhere"},
		"one secret for two":     {top: "public_url: https://gateway.example", org: "idle: {for: 1h}\nalerts: {snooze_secret: {env: SECRET}, webhook: {url: https://hooks.test/, §secret: {env: SECRET}}}", want: "orgs[0].alerts.webhook.secret: has the same value as orgs[0].alerts.snooze_secret"},
		"bundle polled too much": {org: `bundle: {url: "https://b.test/b.tar.gz", allow_unsigned: true, poll: §1ms}`, want: "orgs[0].bundle.poll: requests the bundle 1000 times per second"},
	}
}
