package v1

import "fmt"

// fixture returns a v2 object by name, written from the documented record
// shapes. Each call returns a fresh one.
func fixture(name string) any {
	if list, ok := fixtureLists[name]; ok {
		items := []any{}
		for _, name := range list.of {
			items = append(items, fixture(name))
		}
		return map[string]any{list.member: items}
	}
	text, ok := fixtures[name]
	if !ok {
		panic(fmt.Sprintf("no fixture %q", name))
	}
	return mustJSON(text)
}

// fixtureLists are collections of fixtures.
var fixtureLists = map[string]struct {
	member string
	of     []string
}{
	"podList":      {"pods", []string{"pod", "cpuPod", "exitedPod"}},
	"endpointList": {"endpoints", []string{"endpoint", "cpuEndpoint"}},
	"templateList": {"templates", []string{"template", "slsTemplate"}},
}

var fixtures = map[string]string{
	"gpus": `{"gpus":[
		{"id":"NVIDIA H100 80GB HBM3","name":"H100 SXM","pool":"ADA_80_PRO","manufacturer":"NVIDIA","memory":80,"secure":true,"community":true,
		 "price":{"secure":2.99,"community":2.69,"serverless":4.18},"maxCount":{"secure":8,"community":8},"availability":"LOW",
		 "dataCenters":[{"id":"US-TX-3","name":"US-TX-3","availability":"LOW"}]},
		{"id":"NVIDIA GeForce RTX 4090","name":"RTX 4090","pool":"ADA_24","manufacturer":"NVIDIA","memory":24,"secure":true,"community":true,
		 "price":{"secure":0.69,"community":0.34,"serverless":1.1},"maxCount":{"secure":8,"community":4},"availability":"MEDIUM",
		 "dataCenters":[{"id":"EU-RO-1","name":"EU-RO-1","availability":"HIGH"},{"id":"US-TX-3","name":"US-TX-3","availability":"NONE"}]},
		{"id":"NVIDIA L4","name":"L4","pool":"AMPERE_24","manufacturer":"NVIDIA","memory":24,"secure":true,"community":false,
		 "price":{"secure":0.43,"community":0,"serverless":0.69},"maxCount":{"secure":8,"community":0},"availability":"HIGH",
		 "dataCenters":[{"id":"EU-RO-1","name":"EU-RO-1","availability":"LOW"},{"id":"EU-SE-1","name":"EU-SE-1","availability":"HIGH"}]},
		{"id":"NVIDIA RTX A5000","name":"RTX A5000","pool":"AMPERE_24","manufacturer":"NVIDIA","memory":24,"secure":true,"community":true,
		 "price":{"secure":0.27,"community":0.16,"serverless":0.68},"maxCount":{"secure":8,"community":8},"availability":"HIGH",
		 "dataCenters":[{"id":"EU-SE-1","name":"EU-SE-1","availability":"HIGH"}]},
		{"id":"Tesla V100-PCIE-16GB","name":"Tesla V100","pool":null,"manufacturer":"NVIDIA","memory":16,"secure":true,"community":false,
		 "price":{"secure":0.19,"community":0},"maxCount":{"secure":4,"community":0},"availability":"NONE"}]}`,
	"cpus": `{"cpus":[
		{"id":"cpu5c","name":"5c","group":"Compute-Optimized","vcpu":{"min":2,"max":32},"ramGbPerVcpu":2,
		 "price":{"securePerVcpu":0.035,"serverlessPerVcpu":0.04},"availability":"HIGH","dataCenters":[{"id":"EU-RO-1","name":"EU-RO-1","availability":"HIGH"}]},
		{"id":"cpu3c","name":"3c","group":"Compute-Optimized","vcpu":{"min":2,"max":16},"ramGbPerVcpu":2,
		 "price":{"securePerVcpu":0.03,"serverlessPerVcpu":0.03},"availability":"LOW","dataCenters":[{"id":"EU-RO-1","name":"EU-RO-1","availability":"LOW"}]},
		{"id":"cpu3g","name":"3g","group":"General Purpose","vcpu":{"min":2,"max":32},"ramGbPerVcpu":4,
		 "price":{"securePerVcpu":0.04,"serverlessPerVcpu":0.05},"availability":"MEDIUM","dataCenters":[{"id":"US-TX-3","name":"US-TX-3","availability":"MEDIUM"}]}]}`,
	"dataCenters": `{"dataCenters":[
		{"id":"EU-RO-1","name":"EU-RO-1","region":"EUROPE","networkVolumeTypes":["STANDARD"],"compliance":[],"globalNetwork":true},
		{"id":"EU-SE-1","name":"EU-SE-1","region":"EUROPE","networkVolumeTypes":[],"compliance":[],"globalNetwork":true},
		{"id":"US-TX-3","name":"US-TX-3","region":"NORTH_AMERICA","networkVolumeTypes":["STANDARD"],"compliance":[],"globalNetwork":true}]}`,
	"releases": `{"releases":[],"rollout":{"inProgress":false,"workersOnLatest":0,"workersTotal":0,"percentOnLatest":0},"endpointVersion":3}`,
	"pod": `{"id":"p1","name":"my pod","status":"RUNNING","actions":["stop","restart","terminate"],"image":"img:1","args":"","cmd":[],"entrypoint":[],
		"disk":50,"mounts":{"persistent":{"size":20,"path":"/workspace"}},"ports":["8888/http","22/tcp"],"env":{"A":"1"},"registry":null,"cloud":"SECURE",
		"dataCenterId":"EU-RO-1","cudaVersion":"12.8","ssh":{"proxy":{"host":"h","port":22,"username":"p1-64410a3b","command":"c"},"direct":null},
		"template":null,"cost":0.69,"locked":false,"createdAt":"2026-11-20T12:00:00Z","startedAt":"2026-11-20T12:00:40Z","globalNetworking":{"enabled":false},
		"gpu":{"id":"NVIDIA GeForce RTX 4090","count":1,"vcpuCount":16.5,"memory":62.9},
		"runtime":{"uptime":10,"gpus":[{"util":0,"memoryUtil":0}],"cpu":{"util":1},"memory":{"util":2},
		 "ports":[{"private":8888,"public":60001,"type":"http","ip":"100.65.0.1"},{"private":22,"public":10341,"type":"tcp","ip":"213.173.1.2"}]}}`,
	"newPod": `{"id":"p1","name":"my pod","status":"PROVISIONING","actions":["stop","terminate"],"image":"img:1","args":"","cmd":[],"entrypoint":[],
		"disk":50,"mounts":{"persistent":{"size":20,"path":"/workspace"}},"ports":["8888/http","22/tcp"],"env":{"PUBLIC_KEY":"ssh-ed25519 AAAA"},"registry":null,
		"cloud":"SECURE","dataCenterId":null,"cudaVersion":null,"ssh":{"proxy":null,"direct":null},"template":null,"cost":0.69,"locked":false,
		"createdAt":"2026-11-20T12:00:00Z","startedAt":null,"globalNetworking":{"enabled":false},"gpu":{"id":"NVIDIA GeForce RTX 4090","count":1},"runtime":{}}`,
	"cpuPod": `{"id":"p2","name":"cpu","status":"RUNNING","actions":[],"image":"img:1","args":"python main.py","disk":10,"mounts":{},"ports":[],"env":{},
		"registry":"reg1","cloud":"SECURE","dataCenterId":"US-TX-3","cudaVersion":null,"ssh":{"proxy":null,"direct":null},"template":null,"cost":0.07,"locked":true,
		"createdAt":"2026-11-20T12:00:00Z","startedAt":"2026-11-20T12:00:10.5Z","globalNetworking":{"enabled":false},
		"cpu":{"id":"cpu5c","vcpuCount":2,"memory":4},"runtime":null}`,
	"exitedPod": `{"id":"p3","name":"old","status":"EXITED","actions":["start","terminate"],"image":"img:2","args":"","disk":50,
		"mounts":{"network":[{"volumeId":"v1","path":"/data"}]},"ports":[],"env":{},"registry":null,"cloud":"COMMUNITY","dataCenterId":null,"cudaVersion":null,
		"ssh":{"proxy":null,"direct":null},"template":null,"cost":0.0,"locked":false,"createdAt":"2026-11-19T12:00:00Z","startedAt":"2026-11-19T12:01:00Z",
		"globalNetworking":{"enabled":false},"gpu":{"id":"NVIDIA L4","count":2,"vcpuCount":8,"memory":30},"runtime":null}`,
	"template": `{"id":"t1","name":"tpl","image":"tpl:1","args":"{\"entrypoint\":[\"sh\"],\"cmd\":[\"-c\",\"run\"]}","disk":30,
		"mounts":{"persistent":{"size":40,"path":"/vol"}},"ports":["80/http"],"env":{"T":"1"},"registry":null,"serverless":false,"public":false,
		"category":"NVIDIA","startSsh":true,"startJupyter":false,"allowedCudaVersions":[]}`,
	"slsTemplate": `{"id":"t2","name":"worker","image":"w:1","args":"","disk":10,"mounts":{},"ports":[],"env":{},"registry":null,"serverless":true,
		"public":false,"category":"NVIDIA","startSsh":true,"startJupyter":true,"allowedCudaVersions":[]}`,
	"endpoint": `{"id":"e1","name":"ep","type":"QUEUE","image":"w:1","args":"","disk":10,"env":{"K":"v"},"ports":[],"registry":null,
		"gpu":{"pools":["AMPERE_24","ADA_24"],"excludedTypes":["NVIDIA L4"],"count":1,"allowedCudaVersions":[],"minCudaVersion":null},
		"workers":{"min":0,"max":3,"idleTimeout":5},"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"dataCenterIds":["EU-RO-1"],"networkVolumes":["v1"],
		"timeout":600000,"flashboot":"FLASHBOOT","createdAt":"2026-11-20T12:00:00Z"}`,
	"cpuEndpoint": `{"id":"e2","name":"cpu ep","type":"QUEUE","image":"w:1","args":"","disk":10,"env":{},"ports":[],"registry":null,"gpu":null,
		"cpu":[{"id":"cpu3c","vcpuCount":4,"memory":8}],"workers":{"min":1,"max":2},"scaling":{"type":"REQUEST_COUNT","requestCount":2},"dataCenterIds":[],
		"networkVolumes":[],"timeout":0,"flashboot":"OFF","createdAt":"2026-11-20T12:00:00Z"}`,
	"workers": `{"workers":[{"id":"w1","status":"IDLE","gpuCount":1,"isStale":false,"version":3,"image":"w:1","gpuTypeId":"NVIDIA L4",
		"dataCenterId":"EU-RO-1","uptimeSeconds":5,"startedAt":"2026-11-20T12:00:00Z"},
		{"id":"w2","status":"INITIALIZING","gpuCount":1,"isStale":false,"version":null,"image":null,"gpuTypeId":null,"dataCenterId":null,
		"uptimeSeconds":null,"startedAt":null}],"summary":{},"endpointVersion":3}`,
	"volume":   `{"id":"v1","name":"vol","size":100,"dataCenter":"EU-RO-1","type":"STANDARD"}`,
	"registry": `{"id":"reg1","name":"hub"}`,
	"problem":  `{"title":"Bad Request","status":400,"detail":"request could not be processed"}`,
	"full":     `{"title":"Bad Request","status":400,"detail":"There are no longer any instances available with the requested specifications."}`,
	"podBilling": `{"records":[
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","podId":"p1","totalAmount":1.1000004,"gpuAmount":1,"cpuAmount":0,"diskAmount":0.1000004},
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","podId":"p9","totalAmount":0.3000004,"gpuAmount":0.3,"cpuAmount":0,"diskAmount":0.0000004},
		{"startTime":"2026-11-19T00:00:00Z","endTime":"2026-11-20T00:00:00Z","podId":"p1","totalAmount":0.1,"gpuAmount":0.1,"cpuAmount":0,"diskAmount":0},
		{"startTime":"2026-11-19T00:00:00Z","endTime":"2026-11-20T00:00:00Z","podId":"p2","totalAmount":0.2,"gpuAmount":0,"cpuAmount":0.2,"diskAmount":0}],
		"metadata":{"recordCount":4,"totals":{"totalAmount":1.7000008}}}`,
	"serverlessBilling": `{"records":[
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","serverlessId":"e1","totalAmount":0.1,"gpuAmount":0.1,"cpuAmount":0,"diskAmount":0,"feeAmount":0},
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","serverlessId":"e2","totalAmount":0.2,"gpuAmount":0,"cpuAmount":0.2,"diskAmount":0,"feeAmount":0},
		{"startTime":"2026-11-19T00:00:00Z","endTime":"2026-11-20T00:00:00Z","serverlessId":"gone","totalAmount":0.7,"gpuAmount":0.7,"cpuAmount":0,"diskAmount":0,"feeAmount":0}],
		"metadata":{"recordCount":3,"totals":{"totalAmount":1.0}}}`,
	"volumeBilling": `{"records":[
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","networkVolumeId":"v1","totalAmount":0.5,"standardAmount":0.3,"highPerformanceAmount":0.2},
		{"startTime":"2026-11-18T00:00:00Z","endTime":"2026-11-19T00:00:00Z","networkVolumeId":"v2","totalAmount":0.25,"standardAmount":0.25,"highPerformanceAmount":0}],
		"metadata":{"recordCount":2,"totals":{"totalAmount":0.75}}}`,
}
