//! Functions of DuckDB's own that compute from what they are given and do nothing else: no value of theirs names a sequence, a table or a statement, whatever it is. What calls
//! others is asked in a transaction each time (`known`): `nextval` of NULL is let pass by one that only reads, and so is a macro that runs its value as a statement, until the value
//! is another one.

/// Of signs, of rows, of groups, of windows, and tables. None that draws random numbers, or is told by a value which function to call.
const PLAIN: &str = "
    + - * / // % ** ^ & | ~ << >> && || ~~ !~~ ~~* !~~* ~~~ ^@ @ @> <@ ->>
    like_escape not_like_escape ilike_escape not_ilike_escape

    abs add ceil ceiling cbrt degrees divide even exp factorial floor fmod gcd greatest isfinite isinf isnan lcm least ln log log10 log2 mod multiply nullif pi pow power
    radians round round_even sign sqrt subtract trunc xor acos asin atan atan2 cos cot sin tan bit_count

    ascii base64 bin chr concat concat_ws contains ends_with format from_base64 from_hex hash hex instr lcase left length len levenshtein lower lpad ltrim md5 octet_length ord
    position prefix printf regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches regexp_replace regexp_split_to_array repeat replace reverse right rpad
    rtrim sha1 sha256 split split_part starts_with string_split string_to_array strip_accents strlen strpos substr substring suffix to_base64 to_hex translate trim ucase unhex
    unicode upper url_decode url_encode char_length character_length encode decode jaccard jaro_similarity jaro_winkler_similarity

    age century current_date date_add date_diff date_part date_sub date_trunc datediff datepart datetrunc day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms
    epoch_ns epoch_us era get_current_time get_current_timestamp hour isodow isoyear julian last_day make_date make_time make_timestamp make_timestamptz microsecond
    millennium millisecond minute month monthname now quarter second strftime strptime time_bucket timezone timezone_hour timezone_minute to_centuries to_days to_decades
    to_hours to_microseconds to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp
    try_strptime week weekday weekofyear year yearweek

    array_agg array_concat array_contains array_extract array_has array_has_all array_has_any array_length array_position array_slice array_to_string array_value cardinality
    element_at flatten list list_append list_cat list_concat list_contains list_distinct list_element list_extract list_filter list_has list_has_all list_has_any list_indexof
    list_intersect list_position list_prepend list_reverse list_reverse_sort list_slice list_sort list_transform list_unique list_value list_zip map map_contains map_entries
    map_extract map_extract_value map_from_entries map_keys map_values row struct_concat struct_extract struct_extract_at struct_insert struct_keys struct_pack struct_values
    union_extract union_tag union_value typeof

    array_to_json from_json json_array json_array_length json_contains json_exists json_extract json_extract_path json_extract_path_text json_extract_string json_group_array
    json_group_object json_keys json_merge_patch json_object json_pretty json_quote json_structure json_transform json_type json_valid json_value row_to_json to_json

    any_value approx_count_distinct approx_quantile arbitrary arg_max arg_max_null arg_min arg_min_null argmax argmin avg bit_and bit_or bit_xor bool_and bool_or corr count
    count_if count_star countif covar_pop covar_samp entropy favg first fsum geomean group_concat histogram kahan_sum kurtosis last listagg mad max max_by mean median min min_by
    mode product quantile quantile_cont quantile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy sem skewness stddev stddev_pop
    stddev_samp string_agg sum sum_no_overflow sumkahan var_pop var_samp variance weighted_avg

    cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank rank_dense row_number

    generate_series json_each json_tree range repeat_row unnest
";

/// Whether it is one of these, however its letters are written.
pub fn is_plain(name: &str) -> bool {
    plain().any(|known| known.eq_ignore_ascii_case(name))
}

/// All of them, in small letters.
pub fn plain() -> impl Iterator<Item = &'static str> {
    PLAIN.split_ascii_whitespace()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// They stand in quotes in what DuckDB is asked.
    #[test]
    fn names_need_no_quoting() {
        assert!(plain().count() > 300);
        for name in plain() {
            assert!(
                !name.contains('\'') && name.to_lowercase() == name,
                "{name}"
            );
        }
    }

    #[test]
    fn what_a_value_may_name_something_to_is_not_plain() {
        for name in [
            "+",
            "!~~",
            "Sum",
            "count_star",
            "UPPER",
            "range",
            "date_trunc",
        ] {
            assert!(is_plain(name), "{name}");
        }
        for name in [
            "",
            "nextval",
            "currval",
            "query",
            "query_table",
            "getvariable",
            "setseed",
            "random",
            "list_aggregate",
            "cast_to_type",
            "json_serialize_sql",
            "a_macro_of_the_seller",
        ] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
