package main

import (
	"fmt"
	"strings"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/decisions"
	"github.com/tollgate-dev/tollgate/gateway/explain"
)

func approvalsPage(l *struct{ Approvals []approval.Record }, _ asked) page {
	t := sheet{{"approval", "state", "until", "caller", "call", "summary", "usd", "per", "refused by", "answered by", "used by"}}
	for _, r := range l.Approvals {
		by := make([]string, len(r.Refusals))
		for i, refusal := range r.Refusals {
			by[i] = refusal.By
		}
		answered := ""
		if r.Answer != nil {
			answered = r.Answer.By
		}
		t.add(r.ID, r.State, r.Until, owner(r.Team, r.Key), r.Call, r.Summary, usd(r.USD), r.Per, strings.Join(by, ", "), answered, r.UsedBy)
	}
	return page{sheets: []sheet{t}}
}

func grantedLine(r *approval.Record) string {
	price := "of unknown price"
	if r.Answer != nil && r.Answer.MaxUSD != "" {
		price = fmt.Sprintf("for at most %s USD per %s", r.Answer.MaxUSD, r.Per)
	}
	return fmt.Sprintf("%s: %s may make %s once until %s, %s", r.ID, owner(r.Team, r.Key), r.Call, moment(&r.Until), price)
}

func decisionsPage(l *decisions.List, _ asked) page {
	t := sheet{decisionColumns()}
	for _, s := range l.Decisions {
		t = append(t, decisionCells(&s))
	}
	p := page{sheets: []sheet{t}}
	if l.Incomplete != "" {
		p.text = []string{l.Incomplete}
	}
	if l.Next != "" {
		p.text = append(p.text, "Older decisions: --before "+l.Next)
	}
	return p
}

func decisionColumns() []any {
	return []any{"decision", "time", "org", "team", "key", "operation", "status", "policies", "reason"}
}

func decisionCells(s *explain.Summary) []any {
	var outcomes []string
	if s.Own != nil {
		outcomes = append(outcomes, strings.TrimSpace(s.Own.Resource+" "+s.Own.Did))
	}
	if s.Dry {
		outcomes = append(outcomes, "dry run: "+string(s.Verdict))
	}
	for _, part := range []struct {
		word string
		list []string
	}{{"denied", s.Denied}, {"warned", s.Warned}, {"shadow", s.Shadowed}, {"excepted", s.Excepted}, {"changed", s.Changed}} {
		if len(part.list) > 0 {
			outcomes = append(outcomes, part.word+" "+strings.Join(part.list, ", "))
		}
	}
	return []any{
		s.DecisionID, s.Time, s.Org, s.Team, s.Key, s.Dialect + " " + s.Operation, status(s.Status),
		strings.Join(outcomes, "; "), s.Reason,
	}
}
