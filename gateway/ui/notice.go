package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/approval"
	"github.com/tollgate-dev/tollgate/gateway/money"
)

// noticeTime is the maximum time between an action and the page that shows its notice.
const noticeTime = time.Minute

// notice is a message about a completed action. The next page shows it once.
type notice struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// noticeSecret returns the secret that seals the notices of a request: the value of the session cookie or, on a listener without login, a
// secret of this process. It prevents others from forging notices.
func (c *Console) noticeSecret(r *http.Request) []byte {
	if value, ok := c.cookie(r, sessionCookie); ok && !c.people.open() {
		return []byte(value)
	}
	return []byte(c.secret)
}

// leave stores a notice for the next page. A notice that cannot be sealed is dropped.
func (v *visit) leave(text string) {
	seal, err := v.sessions.cipherOf(v.noticeSecret(v.r), noticeCookie)
	if err != nil {
		return
	}
	if value, err := sealed(seal, notice{text, v.now()}); err == nil {
		v.setCookie(v.w, v.r, noticeCookie, value, int(noticeTime.Seconds()))
	}
}

// take returns the notice for this page, or "", and deletes it.
func (v *visit) take() string {
	value, ok := v.cookie(v.r, noticeCookie)
	if !ok || v.r.Method != http.MethodGet {
		return ""
	}
	v.setCookie(v.w, v.r, noticeCookie, "", -1)
	seal, err := v.sessions.cipherOf(v.noticeSecret(v.r), noticeCookie)
	var n notice
	if err != nil || !unsealed(seal, value, &n) || v.now().Sub(n.At) > noticeTime {
		return ""
	}
	return n.Text
}

// outcome describes the effect of an action, based on its response and form fields.
func outcome(action string, form url.Values, answer any) string {
	id := form.Get("id")
	switch action {
	case "keys/revoke":
		return "Key " + id + " is revoked."
	case "resources/stop":
		return "Pod " + id + " is stopped."
	case "limits/reset":
		return "All rate limits of " + scopeName(form.Get("scope")) + " are reset."
	case "spend/holds/release":
		return "Reservation " + id + " is released."
	case "spend/snooze", "resources/snooze":
		switch snoozed, err := as[money.Snoozed](answer); {
		case err != nil:
			return id + " is snoozed."
		case snoozed.Until == nil:
			return "The snooze of " + id + " has ended."
		default:
			return id + " is snoozed until " + moment(snoozed.Until) + "."
		}
	case "spend/adopt":
		if adopted, err := as[money.Adopted](answer); err == nil {
			return fmt.Sprintf("%s now belongs to %s. The previous owner was %s.", id, adopted.Owner, adopted.Was)
		}
	case "spend/reconcile":
		if r, err := as[money.Reconciled](answer); err == nil {
			return fmt.Sprintf("The ledger was compared with the platform: %d resources, %d adopted, %d removed, %d changed.",
				r.Resources, r.Adopted, r.Removed, r.Changed)
		}
	case "approvals/grant", "approvals/deny":
		if r, err := as[approval.Record](answer); err == nil {
			return answered(&r)
		}
	}
	return "Action completed: " + action + "."
}

// answered describes the resolution of an approval request.
func answered(r *approval.Record) string {
	if r.State != approval.Granted {
		return fmt.Sprintf("Request %s is %s until %s.", r.ID, r.State, moment(&r.Until))
	}
	most := ""
	if r.Answer != nil && r.Answer.MaxUSD != "" {
		most = fmt.Sprintf(", for at most %s per %s", amount(r.Answer.MaxUSD), r.Per)
	}
	return fmt.Sprintf("Approved: %s can send the request once until %s%s. You can revoke the approval under All.",
		r.Key, moment(&r.Until), most)
}

// as converts the response of an action to type T. A response of the data listener is decoded from JSON.
func as[T any](answer any) (out T, err error) {
	switch a := answer.(type) {
	case T:
		return a, nil
	case *T:
		return *a, nil
	}
	text, err := json.Marshal(answer)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		return out, fmt.Errorf("decode the response: %w", err)
	}
	return out, nil
}
