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

// How long catalog answers are good for. Stock changes by the minute, the list
// of data centres by the month.
const (
	catalogTTL    = 30 * time.Second
	dataCenterTTL = 300 * time.Second
	// failureTTL keeps a catalog that is down from slowing every request.
	failureTTL = 5 * time.Second
	// catalogEntries bounds the memory: accounts times query variants.
	catalogEntries = 1024
	// maxKeyless bounds the different questions that callers without a key have
	// answered within catalogTTL, all together.
	maxKeyless = 512
)

// CatalogAllowed caches answers of v2's catalog operations per account: prices and
// pools differ between accounts. Cached bodies are shared and must not be
// changed. It is safe for concurrent use.
type Catalog struct {
	mu       sync.Mutex // guards the fields below
	entries  *lru.LRU[string, catalogEntry]
	latest   map[string]any           // by operation, for all accounts; public lists only
	flights  map[string]chan struct{} // reads under way; closed when they end
	machines map[gpuConfig]machine    // the least that were seen
	keyless  map[string]time.Time     // when answers to callers without a key expire
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
func NewCatalog() *Catalog {
	entries, err := lru.NewLRU[string, catalogEntry](catalogEntries, nil)
	if err != nil {
		panic("catalog cache size: " + err.Error())
	}
	return &Catalog{
		entries: entries, latest: make(map[string]any),
		flights: make(map[string]chan struct{}), machines: make(map[gpuConfig]machine), keyless: make(map[string]time.Time),
	}
}

// RetryRead answers a catalog operation from the cache or from v2, where others that ask the
// same meanwhile wait for the one call. An answer without the list under member is a
// failure. When v2 fails, an older answer is better
// than none and stands in for it; without one the failure is returned. Callers
// without a key are those of the account "": a question of theirs makes one call in
// 30 s, even if it fails.
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
		case <-ended: // look again; whoever asked may have left without an answer
		case <-ctx.Done():
			return nil, &Failure{Err: ctx.Err()}
		}
	}
}

func catalogKey(d *Client, r *Request) string {
	return strings.Join([]string{d.Account(), r.Operation, r.Params["id"], r.Query.Encode()}, "\x00")
}

// fetch asks v2 for the parts that entry no longer has.
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
	} else if len(r.Query) == 0 {
		c.latest[r.Operation] = resp.Body
	}
	entry.expires = d.deps.Now().Add(ttl)
	c.entries.Add(key, entry)
	return entry.body, entry.failed
}

// admitKeylessLocked reports whether one more question without a key may be asked, and notes
// it.
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

// tooManyKeyless is the answer to a question without a key beyond the bound.
func tooManyKeyless() *Response {
	wait := strconv.Itoa(int(catalogTTL.Seconds()))
	return &Response{
		Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {wait}},
		Body: map[string]any{"detail": "too many different questions without a key"},
	}
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
