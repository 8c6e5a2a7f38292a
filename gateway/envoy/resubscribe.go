package envoy

import (
	"maps"

	"github.com/envoyproxy/go-control-plane/pkg/cache/v3"
)

// resubscribed is a cache that sends resources again when an Envoy subscribes to them again, even if the resources are unchanged. An Envoy
// does so if it has dropped a resource, for example the routes of a listener that it could not open. The embedded cache assumes that the
// Envoy still has the resource (issues 583 and 1450 of go-control-plane).
type resubscribed struct{ cache.SnapshotCache }

// CreateDeltaWatch implements cache.ConfigWatcher.
func (r resubscribed) CreateDeltaWatch(req *cache.DeltaRequest, sub cache.Subscription, value chan cache.DeltaResponse) (func(), error) {
	if names := req.GetResourceNamesSubscribe(); len(names) > 0 {
		sub = dropped{sub, versions(sub.ReturnedResources(), names, req.GetInitialResourceVersions())}
	}
	return r.SnapshotCache.CreateDeltaWatch(req, sub, value)
}

// dropped is a subscription where resources that the Envoy has dropped have no version.
type dropped struct {
	cache.Subscription

	returned map[string]string
}

// ReturnedResources implements cache.Subscription.
func (d dropped) ReturnedResources() map[string]string { return d.returned }

// versions returns the versions that were sent to an Envoy, by resource name. It clears the versions of the resources in names that are
// missing in has, the resources that the Envoy reports. The cache sends a resource with a cleared version again if it exists, and removes
// it otherwise.
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
