package filter

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// maxRecent is the number of resources, and of endpoints, in a ReadCache. recentFor is their maximum age.
const (
	maxRecent = 4096
	recentFor = 2 * time.Second
)

// ReadCache caches resources of the platform for two seconds, so that a burst of calls about one resource does not read it repeatedly.
// Before a resource is changed, it is always read from the platform and not from the cache. ReadCache is safe for concurrent use.
type ReadCache struct {
	now func() time.Time

	mu      sync.Mutex // guards objects; put and forget read and write in one step
	objects *lru.Cache[recentKey, recentObject]

	// endpoints contains the endpoints that [Reader.RequireEndpoint] has found, by organisation and ID.
	endpoints *lru.Cache[recentKey, struct{}]
}

// recentKey identifies a resource by the organisation and the path that reads it.
type recentKey struct{ org, path string }

// recentObject is a resource, or a mark that it was changed at the given time.
type recentObject struct {
	doc     any
	at      time.Time
	changed bool
}

// NewReadCache returns an empty ReadCache that uses the given clock.
func NewReadCache(now func() time.Time) *ReadCache {
	objects, _ := lru.New[recentKey, recentObject](maxRecent) // lru.New fails only for a size below 1
	endpoints, _ := lru.New[recentKey, struct{}](maxRecent)
	return &ReadCache{now: now, objects: objects, endpoints: endpoints}
}

// get returns a resource that was read recently.
func (r *ReadCache) get(key recentKey) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.objects.Get(key)
	if !ok || o.changed || r.now().Sub(o.at) > recentFor {
		return nil, false
	}
	return o.doc, true
}

// put stores a resource read by a call that began at the given time, unless the resource was changed after that.
func (r *ReadCache) put(key recentKey, doc any, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.objects.Get(key); ok && o.changed && !o.at.Before(began) {
		return
	}
	r.objects.Add(key, recentObject{doc: doc, at: began})
}

// forget removes a resource from the cache.
func (ex *Exchange) forget(op *schema.Operation, params map[string]string) {
	ex.Ports.ReadCache.forget(recentKey{ex.Caller.Org, expand(op.Path, params)})
}

// forget records that a resource was, or may have been, changed now.
func (r *ReadCache) forget(key recentKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects.Add(key, recentObject{at: r.now(), changed: true})
}
