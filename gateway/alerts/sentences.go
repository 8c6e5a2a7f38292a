package alerts

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/settings"
	"github.com/tollgate-dev/tollgate/gateway/webhook"
	"github.com/tollgate-dev/tollgate/policies/ledger"
)

// content is the data of an alert. It describes the alert in sentences, given the type of the event.
type content interface{ sentence(kind string) string }

// linker is the data of an alert that has links of its own.
type linker interface{ links() []webhook.Link }

// message returns the data of an alert with sentences that describe it, the links of the alert, and a link to the console page about its
// subject.
func message(c *settings.Config, org, kind string, data content) webhook.Message {
	s := webhook.Message{Data: data, Text: data.sentence(kind)}
	if l, ok := data.(linker); ok {
		s.Links = l.links()
	}
	if c.Admin.URL != "" {
		s.Links = append(s.Links, webhook.Link{Title: "Open the console", URL: consolePage(c, org, kind)})
	}
	return s
}

// consolePage returns the URL of the console page for alerts of a kind.
func consolePage(c *settings.Config, org, kind string) string {
	page := map[string]string{
		"budget": "budgets", "spend": "cost", "report": "cost", "resource": "resources", "platform": "resources", "exception": "exceptions",
		"approval": "approvals",
	}[strings.Split(kind, ".")[0]]
	return strings.TrimSuffix(c.Admin.URL, "/") + "/ui/" + page + "?" + url.Values{"org": {org}}.Encode()
}

// formatTime formats a time for display.
func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// dollars formats an amount in USD with cents, or with all its digits below one cent.
func dollars(usd json.Number) string {
	n, err := usd.Float64()
	if err != nil || n != 0 && math.Abs(n) < 0.01 {
		return "$" + usd.String()
	}
	return "$" + strconv.FormatFloat(n, 'f', 2, 64)
}

// resourceName returns the kind of a resource, its name if it has one, and its ID.
func resourceName(kind, name, id string) string {
	if name == "" {
		return strings.TrimSpace(kind + " " + id)
	}
	return fmt.Sprintf("%s %s (%s)", kind, name, id)
}

// createdBy describes the owner of a resource, or "".
func createdBy(team, key string) string {
	switch {
	case team != "" && key != "":
		return " of key " + key + ", team " + team
	case team+key != "":
		return " of " + strings.TrimSpace(map[bool]string{true: "key ", false: "team "}[team == ""]+team+key)
	}
	return ""
}

func (d ownedResource) String() string {
	return fmt.Sprintf("The %s%s in %s", resourceName(d.Kind, d.Name, d.Resource), createdBy(d.Team, d.Key), d.Org)
}

func (d budgetAlert) sentence(kind string) string {
	used := fmt.Sprintf("%s of %s used", d.Used, d.Limit)
	for i := range ledger.Ceilings {
		if ledger.CeilingName(i) == d.Budget && ledger.IsMoney(i) {
			used = fmt.Sprintf("%s of %s used", dollars(d.Used), dollars(d.Limit))
		}
	}
	name := strings.ReplaceAll(d.Budget, "_", " ")
	budget := fmt.Sprintf("The budget %s of %s in %s", name, d.Scope, d.Org)
	if d.Scope == (ledger.Scope{Kind: ledger.KindOrg}).String() {
		budget = fmt.Sprintf("The budget %s of %s", name, d.Org)
	}
	switch kind {
	case "budget.threshold":
		return fmt.Sprintf("%s has reached %d%%: %s.", budget, d.Percent, used)
	case "budget.stopped":
		done := "stopped"
		if d.Kind == "sandbox" {
			done = "deleted"
		}
		return fmt.Sprintf("The %s in %s was %s. %s is used up: %s.", resourceName(cmp.Or(d.Kind, "pod"), d.Name, d.Resource), d.Org, done,
			budget, used)
	}
	text := fmt.Sprintf("%s is used up: %s.", budget, used)
	if d.StopAt != nil {
		text += " Pods will be stopped and sandboxes deleted at " + formatTime(*d.StopAt) + " unless the budget is available again by then."
	}
	return text
}

func (d unusualAlert) sentence(string) string {
	return fmt.Sprintf("The cost of %s in %s in the hour from %s is %s so far, usually %s.",
		d.Scope, d.Org, formatTime(d.Hour), dollars(d.Spent), dollars(d.Usual))
}

func (d unmanaged) sentence(string) string {
	return fmt.Sprintf("The %s in %s was created outside the gateway. It costs %s per hour.",
		resourceName(string(d.Kind), d.Name, d.Resource), d.Org, dollars(d.PerHour))
}

func (d drift) sentence(kind string) string {
	if kind == "resource.removed" {
		return fmt.Sprintf("%s was removed outside the gateway. It cost %s per hour.", d.ownedResource, dollars(d.Before))
	}
	return fmt.Sprintf("%s was changed outside the gateway. It now costs %s per hour. Before the change, it cost %s per hour.",
		d.ownedResource, dollars(d.PerHour), dollars(d.Before))
}

func (d incompleteList) sentence(string) string {
	return fmt.Sprintf("The platform's list for %s contains %d resources and omits %d known resources.", d.Org, d.Listed, d.Missing)
}

func (d idleAlert) sentence(kind string) string {
	idle := fmt.Sprintf("idle since %s (%s)", formatTime(d.Since), strings.ReplaceAll(string(d.Reason), "_", " "))
	if kind == "resource.stopped" {
		return fmt.Sprintf("%s was stopped: it was %s.", d.ownedResource, idle)
	}
	text := fmt.Sprintf("%s is %s and costs %s per month.", d.ownedResource, idle, dollars(d.PerMonth))
	if d.StopAt != nil {
		text += " It will be stopped at " + formatTime(*d.StopAt) + "."
	}
	return text
}

func (d idleAlert) links() []webhook.Link {
	if d.SnoozeURL == "" {
		return nil
	}
	return []webhook.Link{{Title: "Snooze for a day", URL: d.SnoozeURL}}
}

func (d lostLedger) sentence(string) string {
	text := fmt.Sprintf("Redis lost all or part of the ledger of %s (%s).", d.Org, d.Lost)
	if d.Rebuilt != nil {
		text += fmt.Sprintf(" It was rebuilt: the owners of %d resources were restored, %d resources have no owner.", d.Returned, d.Unowned)
	}
	return text
}

func (d expiring) sentence(string) string {
	text := fmt.Sprintf("The exception %s to policy %s in %s ends at %s.", d.Exception, d.Policy, d.Org, formatTime(d.Until))
	if d.GrantedBy != "" {
		text += fmt.Sprintf(" Granted by %s: %s.", d.GrantedBy, cmp.Or(strings.TrimSuffix(d.Reason, "."), "no reason given"))
	}
	return text
}
