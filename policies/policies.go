package policies

import (
	"github.com/tollgate-dev/tollgate/policies/isolate"
	"github.com/tollgate-dev/tollgate/policies/load"
	"github.com/tollgate-dev/tollgate/policies/record"
	"github.com/tollgate-dev/tollgate/policies/section"
)

// The parts of an organisation's section.
type (
	// Config is one organisation's section.
	Config = section.Config
	// Limits bound the resources of evaluations.
	Limits = section.Limits
	// Exception lifts a policy for some callers, for a time and for a reason.
	Exception = section.Exception
	// Entry switches one policy on.
	Entry = section.Entry
	// Mode sets the effect of a violation that a policy finds.
	Mode = section.Mode
	// Bundle says where an organisation's own Rego comes from as an OPA bundle.
	Bundle = section.Bundle
	// BundleKey verifies the signatures of bundles.
	BundleKey = section.BundleKey
	// Names are the names that a section may refer to besides policies.
	Names = load.Names
	// Isolator runs Rego that may never end in child processes.
	Isolator = isolate.Runner
)

// The modes.
const (
	ModeEnforce = section.ModeEnforce
	ModeWarn    = section.ModeWarn
	ModeShadow  = section.ModeShadow
)

// The input that a call is judged by.
type (
	// Input is everything a policy may know about a call.
	Input = record.Input
	// Request is the call as the platform would get it.
	Request = record.Request
	// Caller is the maker of the call.
	Caller = record.Caller
	// Resource is the subject of the call.
	Resource = record.Resource
	// Template holds the gateway's facts about a template that a call names.
	Template = record.Template
	// Owner is the maker of a resource.
	Owner = record.Owner
	// Spend is the present use of an organisation, a team and a key.
	Spend = record.Spend
	// Account is one line of the ledger.
	Account = record.Account
	// Cost is the worst-case price of a call.
	Cost = record.Cost
)

// ErrInput is wrapped by errors about an Input that cannot be judged.
var ErrInput = record.ErrInput
