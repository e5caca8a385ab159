module github.com/holdfast-jobs/holdfast/test/chaos/checker

go 1.26.0

replace github.com/holdfast-jobs/holdfast => ../../..

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/holdfast-jobs/holdfast v0.0.0
	github.com/stretchr/testify v1.12.1
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect
