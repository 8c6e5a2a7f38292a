package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/operator"
)

// A request for approval reaches approvers once: by the receiver, as an event or as sentences with links, and on the overview until it
// is answered. A repeat and a dry run notify nobody.
func TestRequestsForApprovalReachApprovers(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"event", "slack"} {
		for _, name := range []string{"http", "envoy"} {
			t.Run(format+" "+name, func(t *testing.T) {
				r := newAlertReceiver(t)
				r.calls.Add(1) // takes the first delivery
				d := openDoor(t, name, under(approvableCeiling), func(d *door) {
					d.text = strings.Replace(d.text, "- id: acme\n", fmt.Sprintf(
						"- id: acme\n    alerts: {webhook: {url: %q, secret: {env: ALERTS}, networks: [127.0.0.0/8], format: %s}}\n", r.URL, format), 1)
					d.text = "admin: {url: https://ops.example}\n" + d.text
				})
				d.ask(t, strings.Replace(request("POST", "/v2/pods", "key_research", podL4), "\r\n", "\r\nTollgate-Dry-Run: true\r\n", 1))
				call := request("POST", "/v2/pods", "key_research", podL4)
				refusal := d.ask(t, call)
				id := refusedWith(t, refusal, 403)
				refusedWith(t, d.ask(t, call), 403)
				decision := fmt.Sprint(field(t, refusal.Body, "decision"))
				delivery := <-r.got
				name, body, _ := strings.Cut(delivery, " ")
				if name != "approval.requested:acme:"+id {
					t.Errorf("delivery %s, want that of %s", name, id)
				}
				var got struct {
					Type, Text string
					Data       map[string]any
				}
				if err := json.Unmarshal([]byte(body), &got); err != nil {
					t.Fatal(err)
				}
				switch format {
				case "event":
					if got.Type != "approval.requested" || got.Data["approval"] != id || got.Data["key"] != "key_research" || got.Data["answer_url"] != "https://ops.example/ui/approvals?org=acme" ||
						got.Data["decision_url"] != "https://ops.example/ui/requests/"+decision {
						t.Errorf("event %s", body)
					}
				case "slack":
					for _, want := range []string{
						"A call of key key_research, team research in acme was denied and can be approved until ", ": POST /v2/pods, 1 x NVIDIA L4, at most $0.43 per hour. price_ceiling denied it: ",
						" <https://ops.example/ui/approvals?org=acme|Grant or deny>", " <https://ops.example/ui/requests/" + decision + "|See the denied call>",
					} {
						if !strings.Contains(got.Text, want) {
							t.Errorf("text %q lacks %q", got.Text, want)
						}
					}
				}
				waiting := asOperator[operator.Overview](t, d, "GET", "/admin/overview?org=acme").Approvals
				if len(waiting) != 1 || waiting[0].ID != id || waiting[0].Summary != "1 x NVIDIA L4" || waiting[0].USD != "0.43274" || waiting[0].Per != string(approval.PerHour) {
					t.Errorf("overview = %+v, want %s", waiting, id)
				}
				if code := d.grants(t, "grant", "acme", id); code != 200 {
					t.Fatalf("grant: %d", code)
				}
				if left := asOperator[operator.Overview](t, d, "GET", "/admin/overview?org=acme").Approvals; len(left) != 0 {
					t.Errorf("after the answer, the overview has %+v", left)
				}
				select {
				case again := <-r.got:
					t.Errorf("another delivery: %s", again)
				default:
				}
			})
		}
	}
}
