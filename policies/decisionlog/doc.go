// Package decisionlog writes policy decisions, in the event format of OPA's decision logs, to a file, to a stream and to an HTTP
// service.
//
// Recording never blocks: each sink has a bounded buffer, and when it is full the oldest event is dropped and counted. Run masks,
// encodes and sends the events. Events that the service does not accept stay in its buffer and are sent again after an increasing
// pause, which the service can extend (Retry-After). Secrets (values of env, passwords, storage credentials) are always masked;
// more masks can be configured.
//
//	log, err := decisionlog.New(cfg, decisionlog.Deps{Stdout: os.Stdout})
//	go log.Run(ctx) // or in the gateway's errgroup
//	log.Record(decisionlog.Event{...})
package decisionlog
