package money

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/upstream"
	"github.com/tollgate-dev/tollgate/policies/catalog"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// jobTime bounds the question about one job.
const jobTime = 10 * time.Second

// JobOutcome asks the platform's run interface for the outcome of an open hold's job, and
// returns its cost; nil if the job goes on, or nothing is known of it.
func JobOutcome(ctx context.Context, runs *upstream.Client, agent, org string, h *ledger.Hold, price catalog.Run) (*ledger.Settlement, error) {
	id, isJob := strings.CutPrefix(h.ID, jobHold(h.Metadata.Name, ""))
	if !isJob {
		return nil, nil //nolint:nilnil // its call said nothing of a job
	}
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	res, err := runs.Do(ctx, upstream.Request{
		Org: org, Method: http.MethodGet, Target: "/v2/" + url.PathEscape(h.Metadata.Name) + "/status/" + url.PathEscape(id), Decode: true,
		Header: http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {agent}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest { // which a public model that fails answers
		return nil, fmt.Errorf("%w: the status of a job was answered %d", upstream.ErrUnreachable, res.StatusCode)
	}
	var r Reader
	_, err = io.Copy(&r, res.Body)
	ran := runOf(r.End(err != nil), false)
	if err != nil {
		return nil, err
	}
	if ran.ID != id || !final(ran) {
		return nil, nil //nolint:nilnil // it goes on
	}
	amounts, known := costOf(ran, h.Metadata.Name, price, true)
	return &ledger.Settlement{Hold: h.ID, End: ledger.Commit, Amounts: amounts, WholeReservation: !known}, nil
}
