package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/admin"
)

// inZone puts the organisation into a zone.
func inZone(zone string) option {
	return func(d *door) {
		d.text = strings.Replace(d.text, "- id: acme\n", "- id: acme\n    zone: "+zone+"\n", 1)
	}
}

// A budget of a day has room again when the next day begins where the organisation is,
// in each dialect, and a refusal says when that is.
func TestADayBeginsInTheZone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ zone, midnight string }{
		{"UTC", "T00:00:00Z"}, {"Asia/Kathmandu", "T00:00:00+05:45"}, {"America/Phoenix", "T00:00:00-07:00"},
	} {
		eachDoor(t, func(t *testing.T, d *door) {
			now := d.clock.Now()
			refused := func(when string) (roomAt time.Time) {
				t.Helper()
				over := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
				if over.Status != 402 || field(t, over.Body, "budget") != "team research per_day" {
					t.Fatalf("%s: %d %s, want 402 of the day's budget", when, over.Status, over.Body)
				}
				text := fmt.Sprint(field(t, over.Body, "room_at"))
				roomAt, err := time.Parse(time.RFC3339, text)
				if err != nil || !strings.HasSuffix(text, tt.midnight) || !roomAt.After(d.clock.Now()) || roomAt.Sub(now) > 24*time.Hour {
					t.Errorf("%s: room may return at %s, want the next ...%s", when, text, tt.midnight)
				}
				if v1 := d.ask(t, request("POST", "/v1/pods", "key_research", `{"name":"a","imageName":"img:1","gpuTypeIds":["NVIDIA L4"]}`)); v1.Status != 402 || !strings.Contains(v1.Body, text) {
					t.Errorf("%s: v1: %d %s, want 402 that names %s", when, v1.Status, v1.Body, text)
				}
				const deploy = `mutation { podFindAndDeployOnDemand(input: {name: "a", gpuTypeId: "NVIDIA L4", imageName: "img:1", cloudType: SECURE}) { id } }`
				if gql := d.ask(t, graphql(deploy)); !strings.Contains(gql.Body, text) {
					t.Errorf("%s: GraphQL: %d %s, want an error that names %s", when, gql.Status, gql.Body, text)
				}
				return roomAt
			}
			first, second := d.rented(t, podL4), d.rented(t, podL4)
			midnight := refused("with two")
			d.advance(midnight.Sub(now) - time.Second)
			for _, id := range []string{first, second} {
				if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_research", "")); a.Status != 204 {
					t.Fatalf("delete: %d %s", a.Status, a.Body)
				}
			}
			refused("a second before midnight")
			d.advance(time.Second)
			d.rented(t, podL4)
			forecast := operator[admin.Forecasts](t, d, "GET", "/admin/spend/forecast?org=acme")
			for _, s := range forecast.Scopes {
				if expected, err := json.Number(s.Day.Expected).Float64(); s.Scope == "team research" && (err != nil || s.Today != "0" || expected < 23*0.43) {
					t.Errorf("forecast: %+v, want a whole day of one pod to come", s)
				}
			}
		}, budgeted("{per_day: 1}"), inZone(tt.zone))
	}
}
