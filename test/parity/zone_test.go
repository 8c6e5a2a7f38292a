package parity

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tollgate-dev/tollgate/gateway/money"
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
			forecast := asOperator[money.Forecasts](t, d, "GET", "/admin/spend/forecast?org=acme")
			for _, s := range forecast.Scopes {
				if expected, err := json.Number(s.Day.Expected).Float64(); s.Scope == "team research" && (err != nil || s.Today != "0" || expected < 23*0.43) {
					t.Errorf("forecast: %+v, want a whole day of one pod to come", s)
				}
			}
		}, budgeted("{per_day: 1}"), inZone(tt.zone))
	}
}

// Budgets of a week and a quarter have room again when the next period begins where the organisation is. A total never does, until an
// operator credits it. Refusals, forecasts and the caller's own budgets say so.
func TestBudgetsOfOtherPeriods(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ budget, roomAt string }{ // it is Saturday, 2026-11-21
		{"per_week", "2026-11-23T00:00:00+01:00"}, {"per_quarter", "2027-01-01T00:00:00+01:00"}, {"total", `"room_at":null`},
	} {
		t.Run(tt.budget, func(t *testing.T) {
			eachDoor(t, func(t *testing.T, d *door) {
				id := d.rented(t, podL4)
				d.advance(time.Hour)
				over := d.ask(t, request("POST", "/v2/pods", "key_research", podL4))
				if over.Status != 402 || field(t, over.Body, "budget") != "team research "+tt.budget || !strings.Contains(over.Body, tt.roomAt) {
					t.Fatalf("%d %s, want 402 of %s, room at %q", over.Status, over.Body, tt.budget, tt.roomAt)
				}
				if a := d.ask(t, request("DELETE", "/v2/pods/"+id, "key_research", "")); a.Status != 204 {
					t.Fatalf("delete: %d %s", a.Status, a.Body)
				}
				me := d.ask(t, request("GET", "/tollgate/me", "key_research", ""))
				if !strings.Contains(me.Body, `"name":"`+tt.budget+`"`) || tt.budget != "total" && !strings.Contains(me.Body, tt.roomAt) {
					t.Errorf("own budgets: %s, want %s that ends at %s", me.Body, tt.budget, tt.roomAt)
				}
				forecast := asOperator[money.Forecasts](t, d, "GET", "/admin/spend/forecast?org=acme")
				if text := fmt.Sprint(forecast.Scopes); !strings.Contains(text, tt.budget) {
					t.Errorf("forecast: %s, want %s", text, tt.budget)
				}
				room := func(at string, want int) {
					t.Helper()
					if a := d.ask(t, request("POST", "/v2/pods", "key_research", podL4)); a.Status != want {
						t.Errorf("%s: %d %s, want %d", at, a.Status, a.Body, want)
					}
				}
				if tt.budget == "total" {
					d.advance(400 * 24 * time.Hour)
					room("after a year", 402)
					period := "/admin/spend/adjust?org=acme&team=research&reason=renewed&period=total"
					got := asOperator[money.AdjustedAccrual](t, d, "POST", period+"&kind=credit&amount=0.4")
					if got.Period != "total" || got.Change != "-0.4" || got.Accrued != "0.03274" {
						t.Errorf("a credit: %+v", got)
					}
					room("after a credit", 201)
					return
				}
				at, err := time.Parse(time.RFC3339, tt.roomAt)
				if err != nil {
					t.Fatal(err)
				}
				d.advance(at.Sub(d.clock.Now()) - time.Hour)
				room("an hour before", 402)
				d.advance(time.Hour)
				room("in the next", 201)
			}, budgeted("{"+tt.budget+": 0.86}"), inZone("Europe/Berlin"))
		})
	}
}
