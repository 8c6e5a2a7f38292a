package ui

import (
	"slices"

	"github.com/tollgate-dev/tollgate/gateway/alerts"
	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

func hostileTraffic() map[string]any {
	requests, outcomes := filled[decisions.List]().(decisions.List), of[decisions.OutcomeCounts]()
	limits := filled[operator.LimitList]().(operator.LimitList)
	calls := filled[legacy.List]().(legacy.List)
	return map[string]any{
		"requests": newRequestsData(hostileVisit("requests"), &requests, &outcomes, map[string]string{hostile: hostile}),
		"request":  filled[requestData](),
		"limits":   newLimitData(hostileVisit("limits"), &limits),
		"legacy":   newLegacyData(hostileVisit("legacy"), &calls),
	}
}

// hostileRequests are requests for approval, of which one is pending and one granted.
func hostileRequests() []approval.Record {
	requests := filled[[]approval.Record]().([]approval.Record)
	requests[0].State, requests[1].State = approval.Pending, approval.Granted
	return requests
}

// hostileHeld are the hostile data of the page of existing resources.
func hostileHeld() listing {
	held := filled[explain.Audit]().(explain.Audit)
	return heldListing(hostileVisit("policies"), &held)
}

func hostilePolicy() map[string]any {
	counts := of[decisions.PolicyCounts]()
	policy, exceptions := filled[operator.PolicyDetails]().(operator.PolicyDetails), filled[[]alerts.Exception]().([]alerts.Exception)
	return map[string]any{
		"dryrun":     filled[dryRun](),
		"approvals":  newApprovalData(hostileVisit("approvals"), hostileRequests(), nil, nil),
		"policies":   policyListing(hostileVisit("policies"), filled[[]operator.PolicyDetails]().([]operator.PolicyDetails), counts),
		"policy":     newPolicyPage(hostileVisit("policies"), &policy, counts, of[decisions.List](), exceptions),
		"playground": filled[playground](),
		"exceptions": exceptionList(hostileVisit("exceptions"), slices.Clone(exceptions)),
	}
}
