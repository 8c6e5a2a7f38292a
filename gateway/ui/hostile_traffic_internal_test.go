package ui

import (
	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

func hostileTraffic() map[string]any {
	return map[string]any{
		"requests": filled[decisionData](),
		"request":  filled[explain.Report](),
		"limits":   excerpt[operator.Window]{Rows: filled[[]operator.Window]().([]operator.Window)},
		"legacy":   legacyData{excerpt[legacy.Call]{Rows: filled[[]legacy.Call]().([]legacy.Call)}, filled[[]legacy.Brownout]().([]legacy.Brownout)},
	}
}

// hostileRequests are requests for approval, of which one is pending and one granted.
func hostileRequests() []approval.Record {
	requests := filled[[]approval.Record]().([]approval.Record)
	requests[0].State, requests[1].State = approval.Pending, approval.Granted
	return requests
}

func hostilePolicy() map[string]any {
	held := of[explain.Audit]()
	return map[string]any{
		"dryrun":    filled[dryRun](),
		"approvals": excerpt[approval.Record]{Rows: hostileRequests()},
		"policies": policyData{
			Policies: filled[[]policyWeek]().([]policyWeek), Counts: of[decisions.PolicyCounts](), Teams: filled[[]decisions.PolicyCount]().([]decisions.PolicyCount), Held: &held,
		},
		"playground": filled[playground](),
		"exceptions": excerpt[alerts.Exception]{Rows: filled[[]alerts.Exception]().([]alerts.Exception)},
	}
}
