package filter

import (
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/tollgate-dev/tollgate/gateway/schema"
)

// maxRecent bounds how many objects a Recent keeps, recentFor how long one may
// stand for the platform's own answer.
const (
	maxRecent = 4096
	recentFor = 2 * time.Second
)

// ReadCache keeps objects of the platform for a moment, so that the candidates of
// one plan, or a burst of calls about one object, do not read it each time. It
// is for data that does not decide alone: a change is judged on an object that was
// read for it. It is safe for concurrent use.
type ReadCache struct {
	now func() time.Time

	mu      sync.Mutex // guards objects; two steps of one change belong together
	objects *lru.Cache[recentKey, recentObject]
}

// recentKey names an object of an organisation by the call that reads it.
type recentKey struct{ org, path string }

// recentObject is an object, or the mark that it was changed at a time.
type recentObject struct {
	doc     any
	at      time.Time
	changed bool
}

// NewReadCache returns an empty Recent on the given clock.
func NewReadCache(now func() time.Time) (*ReadCache, error) {
	objects, err := lru.New[recentKey, recentObject](maxRecent)
	if err != nil {
		return nil, fmt.Errorf("recent objects: %w", err)
	}
	return &ReadCache{now: now, objects: objects}, nil
}

// get returns an object that was read a moment ago.
func (r *ReadCache) get(key recentKey) (any, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.objects.Get(key)
	if !ok || o.changed || r.now().Sub(o.at) > recentFor {
		return nil, false
	}
	return o.doc, true
}

// put keeps an object read by a call that began at a time. An object changed
// since then is not kept.
func (r *ReadCache) put(key recentKey, doc any, began time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o, ok := r.objects.Get(key); ok && o.changed && !o.at.Before(began) {
		return
	}
	r.objects.Add(key, recentObject{doc: doc, at: began})
}

// forget makes the next Recall of an object a Read.
func (ex *Exchange) forget(op *schema.Operation, params map[string]string) {
	ex.Ports.ReadCache.forget(recentKey{ex.Caller.Org, expand(op.Path, params)})
}

// forget notes that an object was, or may have been, changed just now.
func (r *ReadCache) forget(key recentKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.objects.Add(key, recentObject{at: r.now(), changed: true})
}
