package translate

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
)

// How long catalog answers are good for. Stock changes by the minute, the list
// of data centres by the month.
const (
	catalogTTL    = 30 * time.Second
	dataCenterTTL = 300 * time.Second
	// failureTTL keeps a catalog that is down from slowing every request.
	failureTTL = 5 * time.Second
	// catalogEntries bounds the memory: accounts times query variants.
	catalogEntries = 1024
)

// Catalog caches answers of v2's catalog operations per account: prices and
// pools differ between accounts. Cached bodies are shared and must not be
// changed. It is safe for concurrent use.
type Catalog struct {
	now func() time.Time

	mu      sync.Mutex // guards entries and latest
	entries *lru.LRU[string, catalogEntry]
	latest  map[string]any // by operation, whatever the account; public lists only
}

type catalogEntry struct {
	body    any
	failed  *Failure // why there is no body
	expires time.Time
}

// Failure is a call that did not succeed.
type Failure struct {
	// Response is nil when there was no answer.
	Response *Response
	Err      error
}

// NewCatalog returns an empty cache.
func NewCatalog(now func() time.Time) *Catalog {
	entries, err := lru.NewLRU[string, catalogEntry](catalogEntries, nil)
	if err != nil {
		panic("catalog cache size: " + err.Error())
	}
	return &Catalog{now: now, entries: entries, latest: make(map[string]any)}
}

// Read answers a catalog operation from the cache or from v2. When v2 fails, an
// older answer is better than none and stands in for it; without one the failure
// is returned.
func (c *Catalog) Read(ctx context.Context, d *Dialogue, r *Request) (body any, failed *Failure) {
	key := strings.Join([]string{d.Account(), r.Operation, r.Params["id"], r.Query.Encode()}, "\x00")
	c.mu.Lock()
	entry, found := c.entries.Get(key)
	c.mu.Unlock()
	if found && c.now().Before(entry.expires) {
		return entry.body, entry.failed
	}
	ttl := catalogTTL
	if r.Operation == "listDataCenters" {
		ttl = dataCenterTTL
	}
	resp, err := d.Send(ctx, r, Again)
	fails := err != nil || !resp.OK() || Members(resp.Body) == nil
	switch {
	case !fails:
		entry.body, entry.failed = resp.Body, nil
	case entry.body == nil:
		entry.failed = &Failure{resp, err}
	}
	if ctx.Err() != nil {
		return entry.body, entry.failed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if fails {
		ttl = failureTTL
	} else {
		if len(r.Query) == 0 {
			c.latest[r.Operation] = resp.Body
		}
	}
	entry.expires = c.now().Add(ttl)
	c.entries.Add(key, entry)
	return entry.body, entry.failed
}

// Latest returns the newest unfiltered answer of the operation any account got,
// nil before the first. Which types and centres exist is public knowledge;
// callers must show nothing else of it.
func (c *Catalog) Latest(operation string) any {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest[operation]
}

// GPUQuery asks which GPU types can be placed where.
type GPUQuery struct {
	// Product is POD, CLUSTER or SERVERLESS; empty asks for the plain list
	// without availability, and the other fields are ignored.
	Product string
	// Count is the GPUs per machine; 0 leaves it out.
	Count int64
	// Cloud is SECURE or COMMUNITY; empty leaves it out.
	Cloud string
	// CountryCodes are two-letter codes; a type without a centre there is
	// dropped from the list.
	CountryCodes []string
	// CUDAVersions and MinCUDA exclude each other.
	CUDAVersions []string
	MinCUDA      string
}

// Values is the query of listGpuTypes.
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

// ByID finds the record with the id, nil when there is none.
func ByID(records []any, id string) any {
	i := slices.IndexFunc(records, func(r any) bool { return Text(r, "id") == id })
	if i < 0 {
		return nil
	}
	return records[i]
}

// Level ranks an availability word: HIGH first, NONE last, an unknown or absent
// one before NONE.
func Level(word string) int {
	switch word {
	case "HIGH":
		return 0
	case "MEDIUM":
		return 1
	case "LOW":
		return 2
	case "NONE":
		return 4
	}
	return 3
}

// LevelIn ranks a catalog record by its stock, in the best of the data centres
// when some are named.
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
