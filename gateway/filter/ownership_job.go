package filter

import (
	"context"
	"time"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

const (
	// defaultLife is the platform's retention time for a job without a ttl (reference platform-v2, section 12.2).
	defaultLife = 24 * time.Hour
	// resultLife is the platform's retention time for the result of an ended job (section 12.1).
	resultLife = 30 * time.Minute
	// batchLife is the platform's longest retention time for any job. Batches do not state a time.
	batchLife = 7 * 24 * time.Hour
)

// JobRetention returns how long the platform keeps the job that this call submits, from submission, unless the job ends earlier.
func (ex *Exchange) JobRetention() time.Duration {
	body, _ := ex.Body.Doc.(map[string]any)
	policy, _ := body["policy"].(map[string]any)
	if ms, said := Number(policy["ttl"]); said {
		return time.Duration(ms * float64(time.Millisecond))
	}
	return defaultLife
}

// rememberJob stores the owner of the job in the response once its ID is known.
func (f *CheckOwnership) rememberJob(ctx context.Context, ex *Exchange) {
	a := ex.Response
	if a.Stream == nil {
		f.note(ctx, ex)
		return
	}
	a.OnEnd(func() { f.note(ctx, ex) })
}

func (*CheckOwnership) note(ctx context.Context, ex *Exchange) {
	if !ex.Cost.Run.HasID() {
		return
	}
	life := ex.JobRetention() + resultLife
	if ex.Operation.ID == "createBatch" {
		life = batchLife
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SettleTimeout)
	defer cancel()
	job := ledger.Job{Endpoint: ex.Params["id"], ID: ex.Cost.Run.ID}
	owner := ledger.Owner{Team: ex.Caller.Team, Key: ex.Caller.Key}
	ex.RecordFailure(ex.Ports.Ledger.SetJobOwner(ctx, ex.Caller.Org, job, owner, life)) // on a public model, the job then has no owner
}
