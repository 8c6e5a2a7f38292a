package ledger_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/policies/ledger"
)

func TestReadLabels(t *testing.T) {
	rules := []ledger.LabelRule{{Name: "project", Values: []string{"llm", "vision"}}, {Name: "cost_center"}}
	must := []ledger.LabelRule{{Name: "project", Required: true}}
	var many []ledger.LabelRule
	var each []string
	for _, c := range "abcdefghi" {
		many = append(many, ledger.LabelRule{Name: string(c)})
		each = append(each, string(c)+"=1")
	}
	const pair = "L[0]: must be name=value, with a name of at most 32 characters from a-z, 0-9 and _.-, starting with a letter"
	const value = "L.cost_center: must be at most 63 letters, digits and ._/:@-, starting with a letter or digit"
	for _, tt := range []struct {
		name, text string
		rules      []ledger.LabelRule
		want       ledger.Labels
		faults     []string
	}{
		{"none", "", rules, "", nil},
		{"empty members of the list", " , ,", nil, "", nil},
		{"one", "project=llm", rules, "project=llm", nil},
		{"sorted, and as they are", "project=llm,\tcost_center=0047", rules, "cost_center=0047,project=llm", nil},
		{"what values can be", "cost_center=Ann.B@acme/x:1_2-3", rules, "cost_center=Ann.B@acme/x:1_2-3", nil},
		{"another value", "project=audio", rules, "", []string{"L.project: must be one of llm, vision"}},
		{"not allowed", "stage=test", rules, "", []string{"L.stage: this key is not allowed to set this label, only project, cost_center"}},
		{"nothing is allowed", "stage=test", nil, "", []string{"L.stage: this key is not allowed to set this label or any other label"}},
		{"twice", "project=llm,project=vision", rules, "", []string{"L.project: must not be set twice"}},
		{"no pair", "project", rules, "", []string{pair}},
		{"a name in capitals", "Project=llm", rules, "", []string{pair}},
		{"space around the sign", "project = llm", rules, "", []string{pair}},
		{"a formula", "cost_center==1+1", rules, "", []string{value}},
		{"another formula", "cost_center=@SUM(A1)", rules, "", []string{value}},
		{"a quoted string", `cost_center="a b"`, rules, "", []string{value}},
		{"control characters", "cost_center=a\x00b", rules, "", []string{value}},
		{"a line", "cost_center=a\n", rules, "", []string{value}},
		{"not ASCII", "cost_center=caf\u00e9", rules, "", []string{value}},
		{"an empty value", "cost_center=", rules, "", []string{value}},
		{"long", "cost_center=" + strings.Repeat("x", 64), rules, "", []string{value}},
		{"huge", strings.Repeat("x", 1025), rules, "", []string{"L: must not be longer than 1024 bytes"}},
		{"too many", strings.Join(each, ","), many, "", []string{"L: must not have more than 8 labels"}},
		{"as many as may be", strings.Join(each[1:], ","), many, ledger.Labels(strings.Join(each[1:], ",")), nil},
		{"required and there", "project=x", must, "project=x", nil},
		{"required", "", must, "", []string{"L.project: is required"}},
		{"every fault", "a,project=audio", rules, "", []string{pair, "L.project: must be one of llm, vision"}},
	} {
		got, faults := ledger.ReadLabels("L", tt.text, tt.rules)
		if diff := cmp.Diff(tt.faults, faults); got != tt.want || diff != "" {
			t.Errorf("%s: %q, want %q; faults (-want +got):\n%s", tt.name, got, tt.want, diff)
		}
	}
}
