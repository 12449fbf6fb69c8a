"""What runners report and which jobs they claim: by the exchange, or by single calls for runners of Torc's own."""
