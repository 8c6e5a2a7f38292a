// The explorer of tollgate dev: the routes of the directory, to be tried.
"use strict";

SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#view",
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
  tryItOutEnabled: true,
});
