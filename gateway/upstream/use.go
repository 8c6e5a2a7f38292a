package upstream

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// podUse returns the use of a pod according to its record. It is known only if the runtime report is complete.
func podUse(record map[string]any, answered time.Time) ledger.Usage {
	u := ledger.Usage{Stopped: catalog.PodStopped(record), Uptime: -1}
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

// percent returns the utilisation of a processor.
func percent(part any) (util int64, ok bool) {
	object, _ := part.(map[string]any)
	n, ok := object["util"].(json.Number)
	if !ok {
		return 0, false
	}
	util, err := n.Int64()
	return util, err == nil
}

// volumes returns the IDs of the network volumes mounted by a pod, cluster or endpoint.
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
