package gateway

import (
	"github.com/tollgate-dev/tollgate/gateway/filter"
	"github.com/tollgate-dev/tollgate/gateway/legacy"
	"github.com/tollgate-dev/tollgate/gateway/settings"
)

// legacyFeature returns the feature that serves the legacy APIs, v1 and GraphQL. The gateway can be built without them: delete this file,
// gateway/legacy and translate, and the lines in features.go that use them. The script .ci/without-legacy does so.
func (p *parts) legacyFeature() feature {
	return feature{
		name: "legacy", rows: p.legacy.Endpoints, routes: legacy.Routes, compile: p.compileLegacy,
		stages: legacyStages, tasks: p.legacy.Tasks,
	}
}

// makeLegacy creates the translators of v1 and GraphQL, and the records of which callers use these APIs.
func (p *parts) makeLegacy(cfg *settings.Config) (err error) {
	p.legacy, err = legacy.New(cfg.Redis.Prefix, legacy.Deps{
		Redis: p.deps.Redis, Records: p.scripts, Logger: p.deps.Logger, Meter: p.meterOf("translate/usage"), Current: p.current.view,
		API: p.api, Lists: p.room.Lists, Sleep: p.deps.Sleep, LedgerTypes: p.money.GPUs,
	})
	return err
}

func (p *parts) compileLegacy(c *compiled) (err error) {
	var now filter.Ports
	if s := p.current.Load(); s != nil {
		now = s.pipeline.Ports
	}
	c.pipeline.Ports.Translators, err = p.legacy.Translators(c.cfg, now.Translators)
	return err
}

func legacyStages(c *compiled) stages {
	brownouts := legacy.SchedulesOf(c.cfg)
	return stages{
		"headers/record legacy use": legacy.RecordUse{Schedules: brownouts},
		"body/brownout":             legacy.ApplyBrownouts{Schedules: brownouts},
		"body/translate":            legacy.Translate{},
	}
}
