package filter

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/operation"
	"github.com/tollgate-dev/tollgate/policies/spend"
)

// lists are where the platform lists what is counted, and the member that holds the
// list.
var lists = []struct {
	kind         operation.Kind
	path, member string
}{
	{operation.KindPod, "/v2/pods", "pods"},
	{operation.KindCluster, "/v2/clusters", "clusters"},
	{operation.KindEndpoint, "/v2/serverless", "endpoints"},
	{operation.KindVolume, "/v2/network-volumes", "networkVolumes"},
}

// Inventory lists everything an organisation has at the platform that the ledger
// counts.
func (r *Reader) Inventory(ctx context.Context, org string, prices *catalog.Snapshot) ([]spend.Found, error) {
	var all []spend.Found
	for _, l := range lists {
		doc, date, err := r.list(ctx, org, l.path)
		if err != nil {
			return nil, err
		}
		object, _ := doc.(map[string]any)
		items, ok := object[l.member].([]any)
		if !ok {
			return nil, fmt.Errorf("%w: the answer to GET %s has no list %q", upstream.ErrUnreachable, l.path, l.member)
		}
		for _, item := range items {
			record, _ := item.(map[string]any)
			id, _ := record["id"].(string)
			if id == "" {
				return nil, fmt.Errorf("%w: GET %s lists something without an id", upstream.ErrUnreachable, l.path)
			}
			if record["cluster"] != nil {
				continue // counted with its cluster
			}
			f := spend.Found{Kind: l.kind, ID: id, Print: spend.Print(l.kind, record), Age: age(record, date)}
			f.Name, _ = record["name"].(string)
			f.Amounts, f.Priced = spend.Footprint(l.kind, record, prices)
			all = append(all, f)
		}
	}
	return all, nil
}

// age is how old an object was by the platform's clock when that answered, in
// milliseconds; -1 if it does not say.
func age(record map[string]any, answered time.Time) int64 {
	text, _ := record["createdAt"].(string)
	created, err := time.Parse(time.RFC3339, text)
	if err != nil || answered.IsZero() {
		return -1
	}
	return answered.Sub(created).Milliseconds()
}

// date is the time of an answer by the platform's clock, zero if it does not say.
func date(h http.Header) time.Time {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}
