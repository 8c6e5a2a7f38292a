package upstream

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// podUse is how much a pod is used by its record: the report of its runtime, which
// is known if it has all of them.
func podUse(record map[string]any, answered time.Time) ledger.Usage {
	u := ledger.Usage{Stopped: catalog.Stopped(record), Uptime: -1}
	if started := since(record, "startedAt", answered); started >= 0 {
		u.Uptime = time.Duration(started) * time.Millisecond
	}
	runtime, _ := record["runtime"].(map[string]any)
	cpu, known := percent(runtime["cpu"])
	gpus, _ := runtime["gpus"].([]any)
	machine, _ := record["gpu"].(map[string]any)
	if machine != nil {
		known = known && len(gpus) > 0
	}
	for _, gpu := range gpus {
		util, ok := percent(gpu)
		known, u.GPU = known && ok, max(u.GPU, util)
	}
	u.Known, u.CPU = known && record["status"] == "RUNNING", cpu
	return u
}

// percent reads the use of a processor.
func percent(part any) (util int64, ok bool) {
	object, _ := part.(map[string]any)
	n, ok := object["util"].(json.Number)
	if !ok {
		return 0, false
	}
	util, err := n.Int64()
	return util, err == nil
}

// volumes lists the ids of the network volumes that a pod, a cluster or an endpoint
// mounts.
func volumes(record map[string]any) []any {
	ids, _ := record["networkVolumes"].([]any)
	mounts, _ := record["mounts"].(map[string]any)
	network, _ := mounts["network"].([]any)
	for _, m := range network {
		mount, _ := m.(map[string]any)
		ids = append(slices.Clip(ids), mount["volumeId"])
	}
	return ids
}
