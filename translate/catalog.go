package translate

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// Lifetimes of catalog responses. Stock changes within minutes, the list of data centres within months.
const (
	catalogTTL    = 30 * time.Second
	dataCenterTTL = 300 * time.Second
	// failureTTL is the time during which a failed catalog call is not repeated, so that an outage does not slow down
	// every request.
	failureTTL = 5 * time.Second
	// catalogEntries is the maximum number of cached responses, over all callers and queries.
	catalogEntries = 1024
	// maxKeyless is the maximum number of distinct catalog queries per catalogTTL for callers without a key, all
	// together.
	maxKeyless = 512
)

// Catalog caches the responses of v2 catalog operations. It caches them for each caller, because policies, quotas and prices differ.
// Callers must not modify the cached bodies. A Catalog is safe for concurrent use.
type Catalog struct {
	mu       sync.Mutex // guards the fields below
	entries  *lru.LRU[string, catalogEntry]
	latest   map[string]any           // by operation, across accounts; public lists only
	flights  map[string]chan struct{} // reads in progress; closed when they end
	machines map[gpuConfig]machine    // smallest observed
	keyless  map[string]time.Time     // expiry of each query without a key
}

type catalogEntry struct {
	body    any
	failed  *Failure // why body is missing
	expires time.Time
}

// Failure describes a failed call. Either Err is set, or Response is set and its status is not 2xx.
type Failure struct {
	// Response is nil if no response arrived.
	Response *Response
	Err      error
}

// newCatalog returns an empty cache.
func newCatalog() *Catalog {
	entries, _ := lru.NewLRU[string, catalogEntry](catalogEntries, nil) // NewLRU fails only for a size below 1
	return &Catalog{
		entries: entries, latest: make(map[string]any),
		flights: make(map[string]chan struct{}), machines: make(map[gpuConfig]machine), keyless: make(map[string]time.Time),
	}
}

// Read returns the response to a catalog operation from the cache or from v2. Concurrent reads of the same query share one call. member is
// the name of the list in the response; a response without this list counts as a failure and is not cached. If v2 fails, Read returns an
// expired response if the cache has one and v2 did not answer 403, and otherwise the failure. Requests without a key use the account "".
// Each distinct query without a key causes at most one v2 call in 30 s, even after a failure.
func (c *Catalog) Read(ctx context.Context, d *Client, r *Request, member string) (body any, failed *Failure) {
	key := catalogKey(d, r)
	for {
		c.mu.Lock()
		entry, _ := c.entries.Get(key)
		ended, busy := c.flights[key]
		now := d.deps.Now()
		fresh := now.Before(entry.expires)
		full := !fresh && !busy && d.Account() == "" && !c.admitKeylessLocked(key, now)
		if !fresh && !busy && !full {
			c.flights[key] = make(chan struct{})
		}
		c.mu.Unlock()
		switch {
		case fresh:
			return entry.body, entry.failed
		case full:
			return nil, &Failure{Response: tooManyKeyless()}
		case !busy:
			return c.fetch(ctx, d, r, member, entry)
		}
		select {
		case <-ended: // check again; the reader may have left without a response
		case <-ctx.Done():
			return nil, &Failure{Err: ctx.Err()}
		}
	}
}

func catalogKey(d *Client, r *Request) string {
	return strings.Join([]string{d.Account(), d.caller, r.Operation, r.Params["id"], r.Query.Encode()}, "\x00")
}

// fetch calls v2 and updates the cache entry.
func (c *Catalog) fetch(ctx context.Context, d *Client, r *Request, member string, entry catalogEntry) (body any, failed *Failure) {
	key := catalogKey(d, r)
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		close(c.flights[key])
		delete(c.flights, key)
	}()
	ttl, failureTTL, repeat := catalogTTL, failureTTL, RetryAction
	if r.Operation == "listDataCenters" {
		ttl = dataCenterTTL
	}
	if d.Account() == "" {
		failureTTL, repeat = catalogTTL, NoRetry
	}
	resp, err := d.Send(ctx, r, repeat)
	fails := err != nil || !resp.OK()
	if !fails {
		_, listed := At(resp.Body, member).([]any)
		fails = !listed
	}
	switch {
	case !fails:
		entry.body, entry.failed = resp.Body, nil
	case entry.body == nil, err == nil && resp.Status == http.StatusForbidden:
		entry.body, entry.failed = nil, &Failure{resp, err}
	}
	if ctx.Err() != nil {
		return entry.body, entry.failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if fails {
		ttl = failureTTL
	} else if len(r.Query) == 0 {
		c.latest[r.Operation] = resp.Body
	}
	entry.expires = d.deps.Now().Add(ttl)
	c.entries.Add(key, entry)
	return entry.body, entry.failed
}

// admitKeylessLocked reports whether another query without a key may be sent, and records the query.
func (c *Catalog) admitKeylessLocked(key string, now time.Time) bool {
	if len(c.keyless) >= maxKeyless {
		maps.DeleteFunc(c.keyless, func(_ string, expires time.Time) bool { return !now.Before(expires) })
	}
	if len(c.keyless) >= maxKeyless {
		return false
	}
	c.keyless[key] = now.Add(catalogTTL)
	return true
}

// tooManyKeyless returns the refusal of a query without a key after maxKeyless queries.
func tooManyKeyless() *Response {
	wait := strconv.Itoa(int(catalogTTL.Seconds()))
	return &Response{
		Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {wait}},
		Body: map[string]any{"detail": "too many different catalog queries without a key"},
	}
}

// Latest returns the newest unfiltered response that any account received for the operation, or nil. The response may belong to another
// account, so callers must use only its public data: GPU types and data centres.
func (c *Catalog) Latest(operation string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[operation]
}

// GPUQuery selects GPU types by product, count and location.
type GPUQuery struct {
	// Product is POD, CLUSTER or SERVERLESS. If it is empty, the query requests the plain list without availability and
	// ignores the other fields.
	Product string
	// Count is the number of GPUs per machine; 0 omits the parameter.
	Count int64
	// Cloud is SECURE or COMMUNITY; empty omits the parameter.
	Cloud string
	// CountryCodes are two-letter country codes. The response omits GPU types that have no data centre in these
	// countries.
	CountryCodes []string
	// CUDAVersions and MinCUDA are mutually exclusive.
	CUDAVersions []string
	MinCUDA      string
}

// Values encodes the query parameters of listGpuTypes.
func (q GPUQuery) Values() url.Values {
	if q.Product == "" {
		return nil
	}
	v := url.Values{"include": {"AVAILABILITY"}, "product": {q.Product}}
	if q.Count > 0 {
		v.Set("count", Int(q.Count).String())
	}
	if q.Cloud != "" {
		v.Set("cloud", q.Cloud)
	}
	if len(q.CountryCodes) > 0 {
		v.Set("countryCodes", strings.Join(q.CountryCodes, ","))
	}
	if len(q.CUDAVersions) > 0 {
		v.Set("cudaVersions", strings.Join(q.CUDAVersions, ","))
	} else if q.MinCUDA != "" {
		v.Set("minCudaVersion", q.MinCUDA)
	}
	return v
}

// ByID returns the record with the given id, or nil.
func ByID(records []any, id string) any {
	i := slices.IndexFunc(records, func(r any) bool { return Text(r, "id") == id })
	if i < 0 {
		return nil
	}
	return records[i]
}

// Level ranks an availability word of v2 for sorting. HIGH has the lowest rank and NONE the highest. An unknown or absent word ranks just
// before NONE.
func Level(word string) int {
	if rank := slices.Index([]string{"HIGH", "MEDIUM", "LOW", "", "NONE"}, word); rank >= 0 {
		return rank
	}
	return Level("")
}

// LevelIn ranks a catalog record by its availability. If data centres are given, it uses the best availability in any of them.
func LevelIn(record any, dataCenterIDs []string) int {
	if len(dataCenterIDs) == 0 {
		return Level(Text(record, "availability"))
	}
	best := Level("NONE")
	if At(record, "availability") == nil && At(record, "dataCenters") == nil {
		best = Level("")
	}
	for _, centre := range Items(record, "dataCenters") {
		if slices.Contains(dataCenterIDs, Text(centre, "id")) {
			best = min(best, Level(Text(centre, "availability")))
		}
	}
	return best
}
