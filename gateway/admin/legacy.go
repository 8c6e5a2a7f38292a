package admin

import (
	"context"
	"net/http"
	"time"
)

// Legacy tells who still calls the retired interfaces.
type Legacy interface {
	// Calls returns what is known of an organisation, or of all for "". It
	// returns ErrNoOrg for one that is not configured.
	Calls(ctx context.Context, org string) ([]LegacyCall, error)
}

// LegacyCall is the calls of one caller, with one program, of one operation.
type LegacyCall struct {
	Org       string `json:"org"`
	Key       string `json:"key"`
	Dialect   string `json:"dialect"`
	Operation string `json:"operation"`
	// Agent is the program, as product and major version.
	Agent string    `json:"agent"`
	Count int64     `json:"count"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Statuses counts answers by class, such as "2xx".
	Statuses map[string]int64 `json:"statuses"`
	// V2 lists the operations to move to, the main one first; empty when there
	// is none.
	V2 []string `json:"v2"`
	// Became counts, by v2 operation, the calls that really became it.
	Became map[string]int64 `json:"became,omitempty"`
	// Lost counts, by field, the calls of which v2 has no place for something.
	Lost map[string]int64 `json:"lost,omitempty"`
}

func (d Deps) legacy(r *http.Request) (any, error) {
	calls, err := d.Legacy.Calls(r.Context(), r.URL.Query().Get("org"))
	return legacyList{calls}, err
}
