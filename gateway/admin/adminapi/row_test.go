package adminapi_test

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tollgate-dev/tollgate/gateway/admin/adminapi"
)

type everything struct {
	Org    adminapi.Org       `query:"org,required" doc:"id of an organisation"`
	Team   []adminapi.Team    `query:"team"`
	Text   string             `query:"text" max:"4"`
	Bucket string             `query:"bucket" oneof:"hour,day,month" default:"day"`
	On     bool               `query:"on"`
	Limit  int                `query:"limit" min:"1" max:"9" default:"5"`
	For    adminapi.Duration  `query:"for"`
	From   adminapi.Timestamp `query:"from"`
	Since  adminapi.Since     `query:"since"`
	Body   adminapi.Body
}

var now = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

func scope(org string, roles ...adminapi.Role) adminapi.Principal {
	return adminapi.Principal{Name: "ann", Roles: roles, Org: org, Now: now, Orgs: []adminapi.Tenant{{ID: "acme", Teams: []string{"research", "ops"}}, {ID: "globex", Teams: []string{"ml"}}}}
}

// ask asks a row that answers with its parameters.
func ask(t *testing.T, s adminapi.Principal, query string) (everything, error) {
	t.Helper()
	r := adminapi.Endpoint{Pattern: "GET /x", Role: adminapi.Operator, Subject: adminapi.SubjectOrg, Handler: adminapi.HandlerFor(func(_ context.Context, _ adminapi.Principal, p everything) (everything, error) { return p, nil })}
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	v, err := r.Invoke(t.Context(), s, values, []byte("content"))
	p, _ := v.(everything)
	return p, err
}

func TestParametersAreTyped(t *testing.T) {
	t.Parallel()
	got, err := ask(t, scope("", adminapi.Operator), "org=acme&team=ops&team=research&text=four&on=true&for=7d&from=2026-11-01&since=36h")
	want := everything{
		Org: "acme", Team: []adminapi.Team{"ops", "research"}, Text: "four", Bucket: "day", On: true, Limit: 5, For: adminapi.Duration(168 * time.Hour),
		From: adminapi.Timestamp(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)), Since: adminapi.Since(now.Add(-36 * time.Hour)), Body: adminapi.Body("content"),
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if got, err := ask(t, scope("", adminapi.Operator), "org=acme&since=2026-11-22T15:04:05Z&bucket="); err != nil || got.Bucket != "day" || !time.Time(got.Since).Equal(time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v (%v), want a time and the default in the place of nothing", got, err)
	}
}

// Each fault names its parameter, and all are told at once.
func TestFaultsAreLocated(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":                             "400 org: is required: id of an organisation",
		"org=acmee":                    `404 org: unknown organisation "acmee", did you mean "acme"?; known: acme, globex`,
		"org=acme&team=ml":             `404 team: unknown team of acme "ml"; known: ops, research`,
		"org=acme&team=ops&team=x":     `404 team: unknown team of acme "x"; known: ops, research`,
		"org=acme&tema=ops":            `400 tema: unknown parameter "tema", did you mean "team"?; known: `,
		"org=acme&text=fives":          "400 text: \"fives\": must have at most 4 bytes",
		"org=acme&bucket=week":         `400 bucket: "week": expected hour, day or month`,
		"org=acme&on=2":                `400 on: "2": expected true or false`,
		"org=acme&limit=10":            `400 limit: "10": expected a number from 1 to 9`,
		"org=acme&limit=many":          "400 limit",
		"org=acme&limit=1&limit=2":     "400 limit: must not be repeated",
		"org=acme&for=week":            "400 for: \"week\": expected a duration",
		"org=acme&from=yesterday":      "400 from: \"yesterday\": expected a date",
		"org=acme&since=-1h":           "400 since: \"-1h\": expected a duration before now",
		"org=acme&limit=0&bucket=week": `bucket: "week": expected hour, day or month; limit: "0": expected`,
	} {
		_, err := ask(t, scope("", adminapi.Operator), query)
		faults, ok := errors.AsType[adminapi.FaultsError](err)
		if !ok {
			t.Errorf("%q: %v, want faults", query, err)
			continue
		}
		got := map[int]string{400: "400 ", 404: "404 "}[faults.Status()] + faults.Error()
		if !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q in it", query, got, want)
		}
	}
}

// An asker of a row is held to its role and to the organisation that it is bound to, and learns of no other.
func TestRowsAdmitByScope(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		scope adminapi.Principal
		query string
		want  string
	}{
		{"all", scope("", adminapi.Admin), "org=globex", ""},
		{"without the role", scope("", adminapi.Approver), "org=acme", "role operator is required"},
		{"bound, named", scope("acme", adminapi.Operator), "org=acme", ""},
		{"bound, not named", scope("acme", adminapi.Operator), "", ""},
		{"bound to another", scope("acme", adminapi.Operator), "org=globex", "token is bound to organisation acme"},
		{"bound to what is gone", scope("gone", adminapi.Operator), "", "; none is known"},
	} {
		got, err := ask(t, tt.scope, tt.query)
		if tt.want == "" && (err != nil || got.Org == "") || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %+v (%v), want %q", tt.name, got, err, tt.want)
		}
	}
	s := scope("acme", adminapi.Viewer)
	if diff := cmp.Diff([]adminapi.Tenant{{ID: "acme", Teams: []string{"research", "ops"}}}, s.Visible()); diff != "" {
		t.Errorf("visible (-want +got):\n%s", diff)
	}
}

func TestSigns(t *testing.T) {
	t.Parallel()
	shared := adminapi.Principal{Name: "admin", Anonymous: true}
	for _, tt := range []struct {
		scope       adminapi.Principal
		given, want string
		ok          bool
	}{{shared, "bob", "bob", true}, {shared, "", "", true}, {scope(""), "", "ann", true}, {scope(""), "ann", "ann", true}, {scope(""), "bob", "", false}} {
		if got, err := tt.scope.RecordedName(tt.given); got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s signs as %q: %q (%v), want %q", tt.scope.Name, tt.given, got, err, tt.want)
		}
	}
}
