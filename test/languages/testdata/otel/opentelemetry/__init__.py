"""A stand-in for OpenTelemetry's packages: as much of their API as the SDK uses."""
