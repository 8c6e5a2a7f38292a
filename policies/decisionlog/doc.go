// Package decisionlog writes the decisions of policies, in the event format of OPA's
// decision logs, to a file, to a stream and to an HTTP service.
//
// Recording never waits: events go into a bounded buffer for each sink, and when it is
// full the oldest is dropped and counted. Masking, encoding and sending are the business
// of Run. Events that the service does not take stay in its buffer, and are sent again
// after a growing pause, of which the service may ask for more (Retry-After). Secrets are masked by rules that are always on (values of env,
// passwords, storage credentials) and by configured ones.
//
//	log, err := decisionlog.New(cfg, decisionlog.Deps{Stdout: os.Stdout})
//	go log.Run(ctx) // or in the gateway's errgroup
//	log.Record(decisionlog.Event{...})
package decisionlog
