package parity

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// left reads how many units of the minute an answer leaves, -1 when it says none.
func left(a answer) int {
	m := regexp.MustCompile(`"minute";r=(\d+)`).FindStringSubmatch(a.Header.Get("RateLimit"))
	if m == nil {
		return -1
	}
	n, _ := strconv.Atoi(m[1])
	return n
}

// TestLegacyCallsAreChargedForWhatTheyCause: one unit for each v2 call, and one for a
// request that makes none.
func TestLegacyCallsAreChargedForWhatTheyCause(t *testing.T) {
	t.Parallel()
	eachDoor(t, func(t *testing.T, d *door) {
		template, _ := d.asPlatform(t, "POST", "/v2/templates", `{"name":"t","image":"img:1","serverless":true}`)["id"].(string)
		for i := range 3 {
			d.asPlatform(t, "POST", "/v2/serverless", fmt.Sprintf(`{"name":"e%d","templateId":%q,"gpu":{"pools":["ADA_24"]},"scaling":{"type":"QUEUE_DELAY","queueDelay":4},"workers":{"min":0,"max":1}}`, i, template))
		}
		pods := func(n int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, "a%d: pod(input: {podId: \"nope%d\"}) { id } ", i, i)
			}
			return "{ " + b.String() + "__typename }"
		}
		catalog := strings.Replace(graphql(`{ gpuTypes { id lowestPrice(input: {gpuCount: 1}) { uninterruptablePrice } } }`), "key_research", "key_platform", 1)
		for _, tt := range []struct {
			name, raw string
			least     int // v2 calls it must cause
		}{
			{"v1 list", request("GET", "/v1/pods", "key_platform", ""), 1},
			{"v1 list with everything", request("GET", "/v1/endpoints?includeWorkers=true&includeTemplate=true", "key_platform", ""), 4},
			{"graphql fields", strings.Replace(graphql(pods(5)), "key_research", "key_platform", 1), 5},
			{"graphql catalog", catalog, 1},
			{"graphql catalog again", catalog, 0},
			{"graphql without a call", strings.Replace(graphql(`{ __typename }`), "key_research", "key_platform", 1), 0},
		} {
			before := left(d.ask(t, request("GET", "/v2/nope", "key_platform", "")))
			calls := len(d.platform.Calls())
			got := d.ask(t, tt.raw)
			caused := len(d.platform.Calls()) - calls
			if want := before - max(caused, 1); left(got) != want || caused < tt.least {
				t.Errorf("%s: %d, %d units left after %d v2 calls, want %d left and at least %d calls", tt.name, got.Status, left(got), caused, want, tt.least)
			}
			if after := left(d.ask(t, request("GET", "/v2/nope", "key_platform", ""))); after != left(got)-1 {
				t.Errorf("%s: %d units left afterwards, want %d", tt.name, after, left(got)-1)
			}
		}
	})
}

// TestQuotaEndsInThePlan: wherever in a create the quota ends, the answer is 429 and
// nothing was made, or it is the resource.
func TestQuotaEndsInThePlan(t *testing.T) {
	t.Parallel()
	for what, m := range makers {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			placed := false
			for quota := 1; quota <= 9; quota++ {
				tight := func(d *door) {
					d.text = strings.Replace(d.text, "sha256: SHA256(key_platform), roles: [admin], limits: {minute: 600,",
						fmt.Sprintf("sha256: SHA256(key_platform), roles: [admin], limits: {minute: %d,", quota), 1)
				}
				d, ask := new(lossy).open(t, "http", m, tight)
				got := ask()
				made := d.made(t, m.operation)
				switch {
				case len(made) == 0 && strings.Contains(got.Body, "429") || got.Status == 429 && len(made) == 0:
				case len(made) == 1 && answeredID(got) == made[0]:
					placed = true
				default:
					t.Errorf("with a quota of %d: %d %s, and the platform has %v", quota, got.Status, got.Body, made)
				}
			}
			if !placed {
				t.Error("no quota was enough")
			}
		})
	}
}
