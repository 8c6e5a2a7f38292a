package envoy

import (
	"maps"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// resubscribed sends resources again when an Envoy subscribes to them again, even if they are unchanged. An Envoy subscribes again to a
// resource that it has dropped, for example the routes of a listener that it could not open. The cache assumes that the Envoy still has
// them (issues 583 and 1450 of go-control-plane).
type resubscribed struct{ cache.SnapshotCache }

// CreateDeltaWatch implements cache.ConfigWatcher.
func (r resubscribed) CreateDeltaWatch(req *cache.DeltaRequest, sub cache.Subscription, value chan cache.DeltaResponse) (func(), error) {
	if names := req.GetResourceNamesSubscribe(); len(names) > 0 {
		sub = dropped{sub, versions(sub.ReturnedResources(), names, req.GetInitialResourceVersions())}
	}
	return r.SnapshotCache.CreateDeltaWatch(req, sub, value)
}

// dropped is the subscription of an Envoy that has dropped resources.
type dropped struct {
	cache.Subscription

	returned map[string]string
}

// ReturnedResources implements cache.Subscription.
func (d dropped) ReturnedResources() map[string]string { return d.returned }

// versions returns the versions sent to an Envoy without the resources in names, unless the Envoy reports that it has them. A resource
// without a version is sent again if it exists, and removed otherwise.
func versions(returned map[string]string, names []string, has map[string]string) map[string]string {
	returned = maps.Clone(returned)
	forget := func(name string) {
		if _, sent := returned[name]; sent && has[name] == "" {
			returned[name] = ""
		}
	}
	for _, name := range names {
		if name != "*" {
			forget(name)
			continue
		}
		for every := range returned {
			forget(every)
		}
	}
	return returned
}
