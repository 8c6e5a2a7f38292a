// Package contract is what we believe of the platform, as tests that any
// platform can be held against. It holds no code of its own: the tests are the
// contract, a file per resource.
//
// They run against the emulator, and unchanged against a real platform that the
// environment names:
//
//	TOLLGATE_CONTRACT_URL          base address of the REST API, without /v2
//	TOLLGATE_CONTRACT_KEY          API key with full access
//	TOLLGATE_CONTRACT_RUN_URL      base address of the run interface; without it
//	                               that part is skipped
//	TOLLGATE_CONTRACT_DENIED_KEY   API key without access to anything, for 403
//	TOLLGATE_CONTRACT_DESTRUCTIVE  "1" runs the parts that make, change and pay for
//	                               things; without it only reads run
//	TOLLGATE_CONTRACT_GPU          GPU type to rent; a cheap one is the default
//
// Every answer is held against the OpenAPI document that the platform serves
// itself, or against our own if the document lacks its operation: documented
// status, media type, schema of the body. At the end each operation must have been
// called, and on the emulator every status that is documented must have been seen.
package contract
