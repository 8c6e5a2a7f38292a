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

// jobTime limits the request for the status of one job.
const jobTime = 10 * time.Second

// jobOutcome requests the status of the job of an open hold from the platform's run interface, and returns a settlement with the job's
// cost. It returns nil while the job runs, and [ledger.ErrNoJob] if the platform answers 404.
func jobOutcome(ctx context.Context, account *upstream.Account, org string, h *ledger.Hold, price catalog.RunPrice) (*ledger.Settlement, error) {
	id, isJob := strings.CutPrefix(h.ID, jobHold(h.Metadata.Name, ""))
	if !isJob {
		return nil, nil //nolint:nilnil // the call did not return a job
	}
	ctx, cancel := context.WithTimeout(ctx, jobTime)
	defer cancel()
	res, err := account.Runs.Do(ctx, upstream.Request{
		Org: org, Method: http.MethodGet, Target: "/v2/" + url.PathEscape(h.Metadata.Name) + "/status/" + url.PathEscape(id), Decode: true,
		Header: http.Header{"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {account.Agent}},
	})
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusNotFound {
		return nil, ledger.ErrNoJob
	}
	if res.StatusCode != http.StatusOK && res.StatusCode != http.StatusBadRequest { // a public model answers 400 for a failed job
		return nil, fmt.Errorf("%w: job status request returned status %d", upstream.ErrUnreachable, res.StatusCode)
	}
	var r Reader
	_, err = io.Copy(&r, res.Body)
	ran := runOf(r.End(err != nil), false)
	if err != nil {
		return nil, err
	}
	if ran.ID != id || !final(ran) {
		return nil, nil //nolint:nilnil // still running
	}
	amounts, known := costOf(ran, h.Metadata.Name, price, true)
	return &ledger.Settlement{Hold: h.ID, End: ledger.Commit, Amounts: amounts, WholeReservation: !known}, nil
}
