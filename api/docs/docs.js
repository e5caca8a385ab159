"use strict";

SwaggerUIBundle({
  dom_id: "#docs",
  url: "openapi.json",
  layout: "BaseLayout",
  deepLinking: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // A validator would be somebody else's server.
  validatorUrl: "none",
});
